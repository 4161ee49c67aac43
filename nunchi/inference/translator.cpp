#include "nunchi/inference/translator.h"

#include <algorithm>

#include "nunchi/base/error.h"
#include "nunchi/inference/length_batches.h"
#include "nunchi/text/one_line.h"
#include "nunchi/text/unicode.h"

namespace nunchi {

namespace {

// Throws Error, naming the first difference, unless the models generate the same tokens.
void check_same_target(const TranslatorModel& a, const TranslatorModel& b) {
  const std::string start = "'" + a.name + "' and '" + b.name +
                            "' cannot translate together: they have different target tokens. ";
  const auto refuse = [&](const std::string& what, const auto& of_a, const auto& of_b) {
    throw Error(start + what + " " + of_a + " in the first and " + of_b + " in the second.");
  };
  const Tokenizer &target_a = a.tokenizers.target(), &target_b = b.tokenizers.target();
  if (target_a.vocabulary() != target_b.vocabulary()) {
    refuse("There are", std::to_string(target_a.vocabulary()) + " tokens",
           std::to_string(target_b.vocabulary()));
  }
  if (target_a.fingerprint() != target_b.fingerprint()) {
    for (std::int32_t id = 0; id < target_a.vocabulary(); ++id) {
      const std::string of_a = target_a.piece(id), of_b = target_b.piece(id);
      if (of_a != of_b) {
        refuse("Token " + std::to_string(id) + " is", "'" + of_a + "'", "'" + of_b + "'");
      }
    }
    throw Error(start + "The tokens are the same, but the tokenizers split text differently.");
  }
  const DecoderTokens &tokens_a = a.tokenizers.decoder(), &tokens_b = b.tokenizers.decoder();
  const auto compare = [&](const char* what, std::int32_t of_a, std::int32_t of_b) {
    const auto name = [](std::int32_t id) {
      return id == kNoToken ? std::string("none") : std::to_string(id);
    };
    if (of_a != of_b) refuse(what, name(of_a), name(of_b));
  };
  compare("The start token is", tokens_a.start, tokens_b.start);
  compare("The end token is", tokens_a.end, tokens_b.end);
  compare("The forced first token is", tokens_a.forced_first, tokens_b.forced_first);
  if (tokens_a.suppressed != tokens_b.suppressed) {
    throw Error(start + "Their generation_config.json suppress different tokens.");
  }
}

}  // namespace

Translator::Translator(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
                       const TranslatorOptions& options)
    : Translator(context, std::vector<TranslatorModel>{{model, tokenizers, "the translator"}},
                 options) {}

Translator::Translator(ContextBase& context, const std::vector<TranslatorModel>& models,
                       const TranslatorOptions& options)
    : context_(context),
      members_(checked(models)),
      ensemble_(ensemble_of(members_)),
      options_(options),
      typical_scores_(models.front().typical_scores),
      searcher_(searched_model(), options.search) {
  options_.max_source_length = std::min(options.max_source_length, searched_model().max_length());
  if (options.terms != nullptr || options.inline_terms) check_terms();
}

std::vector<Translator::Member> Translator::checked(const std::vector<TranslatorModel>& models) {
  if (models.empty()) throw UsageError("a translator needs at least one model.");
  std::vector<Member> members;
  for (const TranslatorModel& each : models) {
    members.push_back({&as_translation_model(each.model), &each.tokenizers});
    each.tokenizers.check_fit(each.model, each.name);
    check_same_target(models.front(), each);
  }
  return members;
}

std::unique_ptr<EnsembleModel> Translator::ensemble_of(const std::vector<Member>& members) {
  if (members.size() == 1) return nullptr;
  std::vector<const EncoderDecoder*> models;
  models.reserve(members.size());
  for (const Member& member : members) models.push_back(member.model);
  return std::make_unique<EnsembleModel>(std::move(models));
}

const EncoderDecoder& Translator::searched_model() const {
  if (ensemble_ != nullptr) return *ensemble_;
  return *members_.front().model;
}

// Lines that are translated together.
struct Translator::Batch {
  std::vector<std::size_t> lines;            // indices into the lines of the call
  std::vector<std::vector<Tokens>> sources;  // of each member and line, </s> included
  std::vector<Tokens> prefixes;
  std::vector<RequiredPhrases> phrases;  // empty for a batch without terms
  int beam_size = 0;                     // for the terms; 0 without terms
  std::vector<std::int64_t> numbers;
};

// One line as tokens.
struct Translator::LineTokens {
  std::vector<Tokens> sources;  // of each member, </s> included; all empty for a line without words
  Tokens prefix;
  RequiredPhrases phrases;

  std::int64_t length() const {
    std::size_t longest = 0;
    for (const Tokens& source : sources) longest = std::max(longest, source.size());
    return static_cast<std::int64_t>(longest);
  }
};

std::vector<Translations> Translator::translate(std::span<const SourceLine> lines) {
  std::vector<Translations> translations(lines.size(), Translations(1));
  for (const Batch& batch : batches_of(lines)) {
    const std::vector<Hypotheses> found = searcher_for(batch)({.source = source_of(batch),
                                                               .prefixes = batch.prefixes,
                                                               .phrases = batch.phrases,
                                                               .numbers = batch.numbers,
                                                               .tokens = tokenizers().decoder()});
    for (std::size_t i = 0; i < found.size(); ++i) {
      translations[batch.lines[i]] = to_text(found[i]);
      const Tokens& source = batch.sources[0][i];
      if (options_.alignment) align(source, found[i], translations[batch.lines[i]]);
      const double unknown =
          fallback_share(tokenizers().source(), std::span(source).first(source.size() - 1));
      const bool unlikely = is_unlikely(batch, i, found[i].front());
      for (Translation& translation : translations[batch.lines[i]]) {
        translation.unknown_share = unknown;
        translation.unlikely = unlikely;
      }
      counts_.unknown += unknown >= kUnknownLimit ? 1 : 0;
      counts_.unlikely += unlikely ? 1 : 0;
    }
  }
  return translations;
}

Translation Translator::translate(const std::string& text) {
  return translate(std::vector<SourceLine>{{.text = text}})[0][0];
}

Source Translator::source_of(const Batch& batch) const {
  std::vector<Source> sources;
  for (std::size_t m = 0; m < members_.size(); ++m) {
    sources.emplace_back(make_token_batch(context_, batch.sources[m],
                                          members_[m].model->input_sizes().source_vocabulary));
  }
  if (sources.size() == 1) return sources.front();
  return make_member_sources(std::move(sources));
}

// Lines with different beams are in different batches, so that a line's beam, and with it the
// result, depends on that line only.
std::vector<Translator::Batch> Translator::batches_of(std::span<const SourceLine> lines) {
  std::vector<LineTokens> tokens_of_line;
  std::map<int, std::vector<std::int64_t>> lengths_by_beam;  // of all lines; 0 for other beams
  for (const SourceLine& line : lines) {
    tokens_of_line.push_back(options_.inline_terms ? tokens_of_marked(line) : tokens_of(line));
    const RequiredPhrases& phrases = tokens_of_line.back().phrases;
    const int beam = phrases.empty() ? 0
                                     : std::max(options_.search.beam_size,
                                                TranslatorOptions::term_beam(std::ssize(phrases)));
    std::vector<std::int64_t>& lengths = lengths_by_beam[beam];
    lengths.resize(lines.size());
    lengths[tokens_of_line.size() - 1] = tokens_of_line.back().length();
  }
  std::vector<Batch> batches;
  for (const auto& [beam, lengths] : lengths_by_beam) {
    for (std::vector<std::size_t>& indices :
         length_batches(lengths, {options_.batch_tokens, options_.batch_sentences})) {
      Batch& batch = batches.emplace_back();
      batch.beam_size = beam;
      batch.sources.resize(members_.size());
      for (const std::size_t line : indices) {
        LineTokens& tokens = tokens_of_line[line];
        for (std::size_t m = 0; m < members_.size(); ++m) {
          batch.sources[m].push_back(std::move(tokens.sources[m]));
        }
        batch.prefixes.push_back(std::move(tokens.prefix));
        if (beam > 0) batch.phrases.push_back(std::move(tokens.phrases));
        batch.numbers.push_back(lines[line].number);
      }
      batch.lines = std::move(indices);
    }
  }
  return batches;
}

Searcher& Translator::searcher_for(const Batch& batch) {
  if (batch.beam_size == 0) return searcher_;
  std::unique_ptr<Searcher>& searcher = term_searchers_[batch.beam_size];
  if (searcher == nullptr) {
    SearchOptions search = options_.search;
    search.beam_size = batch.beam_size;
    searcher = std::make_unique<Searcher>(searched_model(), search);
  }
  return *searcher;
}

Translator::LineTokens Translator::tokens_of_marked(const SourceLine& line) {
  std::optional<MarkedLine> read = read_inline_terms(line.text);
  if (!read) {
    ++counts_.markup;
    return tokens_of(line);
  }
  SourceLine plain = line;
  plain.text = std::move(read->text);
  plain.terms.insert(plain.terms.end(), read->targets.begin(), read->targets.end());
  return tokens_of(plain);
}

Translator::LineTokens Translator::tokens_of(const SourceLine& line) {
  LineTokens tokens;
  bool has_words = true;
  for (const Member& member : members_) {
    tokens.sources.push_back(member.tokenizers->source().encode(line.text));
    has_words = has_words && !tokens.sources.back().empty();
  }
  if (!is_valid_utf8(line.text) || !is_valid_utf8(line.prefix)) ++counts_.repaired;
  if (!has_words) {
    ++counts_.empty;
    counts_.cut += line.cut ? 1 : 0;
    return {.sources = std::vector<Tokens>(members_.size())};
  }
  tokens.prefix = tokenizers().target().encode(line.prefix);
  bool cut = line.cut;
  const auto shorten = [&](Tokens& side, std::int64_t reserved) {
    const auto max_tokens =
        static_cast<std::size_t>(std::max<std::int64_t>(0, options_.max_source_length - reserved));
    if (side.size() <= max_tokens) return;
    side.resize(max_tokens);
    cut = true;
  };
  for (std::size_t m = 0; m < members_.size(); ++m) {
    shorten(tokens.sources[m], 1);  // </s>
    tokens.sources[m].push_back(members_[m].tokenizers->source().special().end);
  }
  shorten(tokens.prefix, 2);  // <s> and at least one token that is generated
  tokens.phrases = phrases_of(line, std::ssize(tokens.prefix));
  counts_.cut += cut ? 1 : 0;
  return tokens;
}

// Terms that do not fit into the limits are left out.
RequiredPhrases Translator::phrases_of(const SourceLine& line, std::int64_t prefix) {
  std::vector<std::string> targets = line.terms;
  if (options_.terms != nullptr) {
    const std::vector<std::string> found = options_.terms->targets_in(line.text);
    targets.insert(targets.end(), found.begin(), found.end());
  }
  RequiredPhrases phrases;
  std::int64_t tokens = 0;
  bool all = true;
  for (const std::string& target : targets) {
    std::optional<RequiredPhrase> phrase = required_phrase(tokenizers().target(), target);
    const std::int64_t more = phrase ? token_count(*phrase) : 0;
    // The start token takes a position, too.
    const bool fits = phrase && std::ssize(phrases) < kMaxRequiredPhrases &&
                      tokens + more <= kMaxRequiredTokens &&
                      prefix + tokens + more < searched_model().max_length();
    all = all && fits;
    if (!fits) continue;
    tokens += more;
    phrases.push_back(std::move(*phrase));
  }
  counts_.terms += all ? 0 : 1;
  return phrases;
}

// The terms of a file are checked before the first line is translated.
void Translator::check_terms() const {
  if (options_.search.sample) {
    throw UsageError("terms need a search: they cannot be combined with sampling.");
  }
  if (options_.terms == nullptr) return;
  const Tokenizer& target = tokenizers().target();
  for (const Term& term : options_.terms->terms()) {
    const std::optional<RequiredPhrase> phrase = required_phrase(target, term.target);
    if (!phrase) {
      throw Error(term.where + ": the model's target tokenizer cannot spell '" + term.target +
                  "': it writes '" + target.decode(target.encode(term.target)) + "'.");
    }
    if (token_count(*phrase) > kMaxRequiredTokens) {
      throw Error(term.where + ": '" + term.target + "' is too long: a line's terms can have " +
                  std::to_string(kMaxRequiredTokens) + " tokens in all.");
    }
  }
}

int TranslatorOptions::term_beam(std::int64_t terms) {
  constexpr int kHypothesesPerBank = 4;
  return kHypothesesPerBank * static_cast<int>(terms + 1);
}

Translations Translator::to_text(const Hypotheses& found) const {
  const Tokenizer& tokenizer = tokenizers().target();
  Translations translations;
  for (const Hypothesis& hypothesis : found) {
    Translation& translation = translations.emplace_back();
    translation.text = in_one_line(tokenizer.decode(hypothesis.tokens));
    translation.score = hypothesis.score;
    translation.log_probability = hypothesis.log_probability;
    translation.token_scores = hypothesis.token_scores;
    for (const std::int32_t id : hypothesis.tokens) {
      translation.pieces.push_back(tokenizer.piece(id));
    }
    if (hypothesis.ended_by_eos) {
      translation.pieces.push_back(tokenizer.piece(tokenizers().decoder().end));
      translation.last_piece = LastPiece::end_token;
    }
  }
  return translations;
}

bool Translator::is_unlikely(const Batch& batch, std::size_t line, const Hypothesis& best) const {
  const bool constrained =
      options_.search.sample || !batch.prefixes[line].empty() || batch.beam_size > 0;
  if (!typical_scores_ || constrained || best.token_scores.empty()) return false;
  return typical_scores_->is_unlikely(best.log_probability /
                                      static_cast<double>(best.token_scores.size()));
}

void Translator::align(const Tokens& source, const Hypotheses& found,
                       Translations& translations) const {
  const TranslationModel& model = *members_.front().model;
  std::vector<std::string> pieces;
  for (const std::int32_t id : source) pieces.push_back(tokenizers().source().piece(id));
  std::vector<Tokens> targets;
  for (const Hypothesis& hypothesis : found) targets.push_back(hypothesis.tokens);
  const std::vector<Tokens> sources(found.size(), source);
  const auto attentions = cross_attention(
      model, make_token_batch(context_, sources, model.input_sizes().source_vocabulary), targets,
      tokenizers().decoder());
  for (std::size_t i = 0; i < found.size(); ++i) {
    AttentionMatrix& attention = translations[i].attention;
    attention = {.sources = pieces,
                 .targets = translations[i].pieces,
                 .weights = alignment_weights(attentions[i], options_.alignment_heads),
                 .last_source = LastPiece::end_token,
                 .last_target = translations[i].last_piece};
    // A translation that was cut at its maximum length has no piece, and so no row, for its end.
    attention.weights.resize(attention.targets.size() * pieces.size());
  }
}

}  // namespace nunchi
