#include "nunchi/inference/generator.h"

#include <algorithm>
#include <numeric>

#include "nunchi/base/error.h"
#include "nunchi/text/unicode.h"

namespace nunchi {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";

// The byte at which the first stop begins; npos if there is none.
std::size_t find_stop(std::string_view text, std::span<const std::string> stops) {
  std::size_t first = text.npos;
  for (const std::string& stop : stops) first = std::min(first, text.find(stop));
  return first;
}

// The number of bytes that cannot change while the text grows. A suffix that could become a stop
// may still change, and so may incomplete characters.
std::size_t settled_bytes(std::string_view text, std::span<const std::string> stops) {
  std::size_t length = text.size();
  while (text.substr(0, length).ends_with(kReplacement)) length -= kReplacement.size();
  for (const std::string& stop : stops) {
    for (std::size_t prefix = std::min(stop.size(), text.size()); prefix > 0; --prefix) {
      if (text.ends_with(std::string_view(stop).substr(0, prefix))) {
        length = std::min(length, text.size() - prefix);
        break;
      }
    }
  }
  return length;
}

SearchOptions checked(const GeneratorOptions& options) {
  for (const std::string& stop : options.stops) {
    if (stop.empty()) throw UsageError("a stop cannot be empty.");
  }
  return options.search;
}

}  // namespace

Tokens prompt_tokens(const Tokenizer& tokenizer, std::string_view text) {
  Tokens tokens;
  for (std::string_view rest = text;;) {
    const std::size_t end = rest.find('\n');
    const Tokens line = tokenizer.encode(rest.substr(0, end));
    tokens.insert(tokens.end(), line.begin(), line.end());
    if (end == rest.npos) break;
    tokens.push_back(tokenizer.line_end());
    rest.remove_prefix(end + 1);
  }
  if (tokens.empty()) tokens.push_back(tokenizer.line_end());
  return tokens;
}

DecoderTokens continuation_tokens(const Tokenizers& tokenizers, bool stop_at_end) {
  const bool is_line_break = tokenizers.decoder().end == tokenizers.target().line_end() &&
                             tokenizers.generation_tokens().end == kNoToken;
  return {.end = stop_at_end && !is_line_break ? tokenizers.decoder().end : kNoToken,
          .suppressed = tokenizers.decoder().suppressed};
}

// A text that is being generated.
struct Generator::Text {
  std::size_t prompt_tokens = 0;
  std::size_t prompt_bytes = 0;     // of the decoded prompt
  std::int64_t number = 0;          // Prompt::number
  std::int64_t round = 0;           // searches so far; a text longer than the context needs several
  Tokens tokens = {};               // the prompt and the continuation
  std::vector<double> scores = {};  // log-probabilities of the continuation
  double end_score = 0;             // log-probability of the end token
  bool ended = false;               // by the end token
  bool stopped = false;
};

Generator::Generator(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
                     const GeneratorOptions& options)
    : model_(as_language_model(model)),
      context_(context),
      tokenizer_(tokenizers.target()),
      options_(options),
      tokens_(continuation_tokens(tokenizers, options.stop_at_end)),
      searcher_(model_, context_, checked(options)) {
  tokenizers.check_fit(model, "the generator");
  if (model_.max_length() < 2)
    throw Error("a model with one position cannot generate: it needs at least two.");
}

Generator::Text Generator::start_text(const Prompt& prompt) {
  if (!is_valid_utf8(prompt.text)) ++counts_.repaired;
  counts_.lost += prompt.cut ? 1 : 0;
  Tokens tokens = prompt_tokens(tokenizer_, prompt.text);
  if (static_cast<std::int64_t>(tokens.size()) >= model_.max_length()) ++counts_.cut;
  Text text{.prompt_tokens = tokens.size(),
            .prompt_bytes = text_of(tokenizer_, tokens).size(),
            .number = prompt.number};
  text.tokens = std::move(tokens);
  return text;
}

std::string Generator::after_prompt(const Text& text) const {
  const std::string decoded = text_of(tokenizer_, text.tokens);
  return decoded.substr(std::min(decoded.size(), text.prompt_bytes));
}

bool Generator::is_done(const Text& text) const {
  return text.stopped || text.ended ||
         static_cast<std::int64_t>(text.tokens.size() - text.prompt_tokens) >=
             options_.search.max_length;
}

// The number of last tokens that the next search starts with.
std::size_t Generator::visible_tokens(const Text& text) const {
  const auto context_size = static_cast<std::size_t>(model_.max_length());
  return text.tokens.size() < context_size ? text.tokens.size() : (context_size + 1) / 2;
}

// Continues texts until the model's context is full.
void Generator::extend(std::span<Text*> texts, const SearchWatch& watch) {
  std::vector<Tokens> prefixes;
  std::vector<std::int64_t> numbers;
  for (const Text* text : texts) {
    const auto visible = text->tokens.end() - static_cast<std::ptrdiff_t>(visible_tokens(*text));
    prefixes.emplace_back(visible, text->tokens.end());
    // Each round of a text has other random draws.
    numbers.push_back(text->number + (text->round << 40));
  }
  const std::vector<Hypotheses> found =
      searcher_({.prefixes = prefixes, .numbers = numbers, .tokens = tokens_, .watch = watch});
  const auto max_length = static_cast<std::size_t>(options_.search.max_length);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    Text& text = *texts[i];
    const Hypothesis& best = found[i].front();
    for (std::size_t t = prefixes[i].size(); t < best.tokens.size(); ++t) {
      if (text.tokens.size() - text.prompt_tokens == max_length) break;
      text.tokens.push_back(best.tokens[t]);
      text.scores.push_back(best.token_scores[t]);
    }
    text.ended = best.ended_by_eos && !is_done(text);
    if (text.ended) text.end_score = best.token_scores.back();
    ++text.round;
  }
}

// The search may have continued after the token that completes a stop. Finds that token by
// bisection and drops the tokens after it.
Continuation Generator::finished(const Text& text) const {
  const auto first_tokens = [&](std::size_t count) {
    Text shortened = text;
    shortened.tokens.resize(text.prompt_tokens + count);
    return after_prompt(shortened);
  };
  const auto has_stop = [&](std::size_t count) {
    return find_stop(first_tokens(count), options_.stops) != std::string::npos;
  };
  std::size_t count = text.tokens.size() - text.prompt_tokens;
  const bool stops = has_stop(count);
  if (stops) {
    std::size_t without = 0;
    while (without + 1 < count) {
      const std::size_t middle = (without + count) / 2;
      (has_stop(middle) ? count : without) = middle;
    }
  }
  std::string after = first_tokens(count);
  after.resize(std::min(after.size(), find_stop(after, options_.stops)));
  const auto begin = text.tokens.begin() + static_cast<std::ptrdiff_t>(text.prompt_tokens);
  const auto kept = static_cast<std::ptrdiff_t>(count);
  return {.text = std::move(after),
          .tokens = Tokens(begin, begin + kept),
          .log_probability = std::accumulate(text.scores.begin(), text.scores.begin() + kept,
                                             text.ended && !stops ? text.end_score : 0.0),
          .ended = text.ended && !stops};
}

std::vector<Continuation> Generator::generate(std::span<const Prompt> prompts) {
  std::vector<Text> texts;
  for (const Prompt& prompt : prompts) texts.push_back(start_text(prompt));
  const auto batch_size = static_cast<std::size_t>(options_.batch_prompts);
  for (std::size_t first = 0; first < texts.size(); first += batch_size) {
    while (true) {
      std::vector<Text*> unfinished;
      for (std::size_t i = first; i < std::min(first + batch_size, texts.size()); ++i) {
        if (!is_done(texts[i])) unfinished.push_back(&texts[i]);
      }
      if (unfinished.empty()) break;
      extend(unfinished, {});
      for (Text* text : unfinished) {
        text->stopped = find_stop(after_prompt(*text), options_.stops) != std::string::npos;
      }
    }
  }
  std::vector<Continuation> found;
  found.reserve(texts.size());
  for (const Text& text : texts) found.push_back(finished(text));
  return found;
}

Continuation Generator::generate(const Prompt& prompt, const TextSink& sink) {
  if (options_.search.beam_size > 1) {
    const Continuation found = generate(std::span(&prompt, 1)).front();
    if (sink) sink(found.text);
    return found;
  }
  Text text = start_text(prompt);
  StreamedText streamed(tokenizer_);
  streamed.add(text.tokens);
  std::size_t sent = 0;  // bytes
  const auto send = [&](std::string_view after, std::size_t length) {
    if (sink && length > sent && !sink(after.substr(sent, length - sent))) text.stopped = true;
    sent = std::max(sent, length);
  };
  const std::size_t max_tokens =
      text.prompt_tokens + static_cast<std::size_t>(options_.search.max_length);
  while (!is_done(text)) {
    // The search also reports the tokens that it started with, but not those before them.
    const std::size_t unreported = text.tokens.size() - visible_tokens(text);
    Text* text_pointer = &text;
    extend(std::span(&text_pointer, 1), [&](std::span<const std::int32_t> tokens) {
      const std::size_t count = std::min(unreported + tokens.size(), max_tokens);
      if (count <= streamed.token_count()) return count < max_tokens;
      streamed.add(
          tokens.subspan(streamed.token_count() - unreported, count - streamed.token_count()));
      const std::string_view decoded = streamed.text();
      const std::string_view after = decoded.substr(std::min(decoded.size(), text.prompt_bytes));
      // No stop begins in text that was already sent to the sink.
      const std::string_view unsent = after.substr(std::min(sent, after.size()));
      const std::size_t stop = find_stop(unsent, options_.stops);
      text.stopped = stop != unsent.npos;
      send(after, text.stopped ? sent + stop : settled_bytes(after, options_.stops));
      return !text.stopped && count < max_tokens;
    });
    if (text.tokens.size() > streamed.token_count()) {
      streamed.add(std::span<const std::int32_t>(text.tokens).subspan(streamed.token_count()));
    }
  }
  Continuation found = finished(text);
  send(found.text, found.text.size());
  return found;
}

}  // namespace nunchi
