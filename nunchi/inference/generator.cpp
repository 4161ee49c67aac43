#include "nunchi/inference/generator.h"

#include <algorithm>
#include <numeric>

#include "nunchi/base/error.h"
#include "nunchi/text/unicode.h"

namespace nunchi {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";

// Where the first stop begins; npos if there is none.
std::size_t stop_in(std::string_view text, std::span<const std::string> stops) {
  std::size_t first = text.npos;
  for (const std::string& stop : stops) first = std::min(first, text.find(stop));
  return first;
}

// How many bytes of a text cannot change while it grows: a suffix that could become a stop and
// incomplete characters may still change.
std::size_t settled_bytes(std::string_view text, std::span<const std::string> stops) {
  std::size_t length = text.size();
  while (text.substr(0, length).ends_with(kReplacement)) length -= kReplacement.size();
  for (const std::string& stop : stops) {
    for (std::size_t part = std::min(stop.size(), text.size()); part > 0; --part) {
      if (text.ends_with(std::string_view(stop).substr(0, part))) {
        length = std::min(length, text.size() - part);
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

// A text under way.
struct Generator::Text {
  std::size_t prompt = 0;   // tokens of the prompt
  std::size_t shown = 0;    // bytes of the prompt when decoded
  std::int64_t number = 0;  // Prompt::number
  std::int64_t round = 0;
  Tokens tokens = {};               // the prompt and the continuation
  std::vector<double> scores = {};  // log-probabilities of the continuation
  bool stopped = false;
};

Generator::Generator(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
                     const GeneratorOptions& options)
    : model_(as_language_model(model)),
      context_(context),
      tokenizer_(tokenizers.target()),
      options_(options),
      tokens_{.suppressed = tokenizers.decoder().suppressed},
      searcher_(model_, context_, checked(options)) {
  tokenizers.check_fit(model, "the generator");
  if (model_.max_length() < 2)
    throw Error("a model with one position cannot generate: it needs at least two.");
}

Generator::Text Generator::start_text(const Prompt& prompt) {
  if (!is_valid_utf8(prompt.text)) ++counts_.repaired;
  counts_.lost += prompt.cut ? 1 : 0;
  // Each line is encoded on its own, as in training; a text begins where a line ended.
  Tokens tokens;
  for (std::string_view rest = prompt.text;;) {
    const std::size_t end = rest.find('\n');
    const Tokens line = tokenizer_.encode(rest.substr(0, end));
    tokens.insert(tokens.end(), line.begin(), line.end());
    if (end == rest.npos) break;
    tokens.push_back(tokenizer_.line_end());
    rest.remove_prefix(end + 1);
  }
  if (tokens.empty()) tokens.push_back(tokenizer_.line_end());
  if (static_cast<std::int64_t>(tokens.size()) >= model_.max_length()) ++counts_.cut;
  Text text{.prompt = tokens.size(),
            .shown = text_of(tokenizer_, tokens).size(),
            .number = prompt.number};
  text.tokens = std::move(tokens);
  return text;
}

std::string Generator::after_prompt(const Text& text) const {
  const std::string all = text_of(tokenizer_, text.tokens);
  return all.substr(std::min(all.size(), text.shown));
}

bool Generator::is_done(const Text& text) const {
  return text.stopped ||
         static_cast<std::int64_t>(text.tokens.size() - text.prompt) >= options_.search.max_length;
}

// How many of the last tokens the model gets.
std::size_t Generator::visible_tokens(const Text& text) const {
  const auto most = static_cast<std::size_t>(model_.max_length());
  return text.tokens.size() < most ? text.tokens.size() : (most + 1) / 2;
}

// Continues texts until the model's positions are full.
void Generator::extend(std::span<Text*> texts, const SearchWatch& watch) {
  std::vector<Tokens> prefixes;
  std::vector<std::int64_t> numbers;
  for (const Text* text : texts) {
    const auto seen = text->tokens.end() - static_cast<std::ptrdiff_t>(visible_tokens(*text));
    prefixes.emplace_back(seen, text->tokens.end());
    // The number of a draw consists of the text's number and the round.
    numbers.push_back(text->number + (text->round << 40));
  }
  const std::vector<Hypotheses> found =
      searcher_({.prefixes = prefixes, .numbers = numbers, .tokens = tokens_, .watch = watch});
  const auto most = static_cast<std::size_t>(options_.search.max_length);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    Text& text = *texts[i];
    const Hypothesis& best = found[i].front();
    for (std::size_t t = prefixes[i].size(); t < best.tokens.size(); ++t) {
      if (text.tokens.size() - text.prompt == most) break;
      text.tokens.push_back(best.tokens[t]);
      text.scores.push_back(best.token_scores[t]);
    }
    ++text.round;
  }
}

// The search may have gone past the token that completes a stop: finds that token by bisection and
// drops those after it.
Continuation Generator::finished(const Text& text) const {
  const auto first_tokens = [&](std::size_t count) {
    Text part = text;
    part.tokens.resize(text.prompt + count);
    return after_prompt(part);
  };
  const auto has_stop = [&](std::size_t count) {
    return stop_in(first_tokens(count), options_.stops) != std::string::npos;
  };
  std::size_t count = text.tokens.size() - text.prompt;
  if (has_stop(count)) {
    std::size_t without = 0;
    while (without + 1 < count) {
      const std::size_t middle = (without + count) / 2;
      (has_stop(middle) ? count : without) = middle;
    }
  }
  std::string after = first_tokens(count);
  after.resize(std::min(after.size(), stop_in(after, options_.stops)));
  const auto begin = text.tokens.begin() + static_cast<std::ptrdiff_t>(text.prompt);
  const auto kept = static_cast<std::ptrdiff_t>(count);
  return {.text = std::move(after),
          .tokens = Tokens(begin, begin + kept),
          .log_probability = std::accumulate(text.scores.begin(), text.scores.begin() + kept, 0.0)};
}

std::vector<Continuation> Generator::generate(std::span<const Prompt> prompts) {
  std::vector<Text> texts;
  for (const Prompt& prompt : prompts) texts.push_back(start_text(prompt));
  const auto at_once = static_cast<std::size_t>(options_.batch_prompts);
  for (std::size_t first = 0; first < texts.size(); first += at_once) {
    while (true) {
      std::vector<Text*> open;
      for (std::size_t i = first; i < std::min(first + at_once, texts.size()); ++i) {
        if (!is_done(texts[i])) open.push_back(&texts[i]);
      }
      if (open.empty()) break;
      extend(open, {});
      for (Text* text : open) {
        text->stopped = stop_in(after_prompt(*text), options_.stops) != std::string::npos;
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
  std::size_t sent = 0;
  const auto send = [&](std::string_view after, std::size_t length) {
    if (sink && length > sent && !sink(after.substr(sent, length - sent))) text.stopped = true;
    sent = std::max(sent, length);
  };
  const std::size_t most = text.prompt + static_cast<std::size_t>(options_.search.max_length);
  while (!is_done(text)) {
    // The search reports the tokens that it was started with too.
    const std::size_t hidden = text.tokens.size() - visible_tokens(text);
    Text* only = &text;
    extend(std::span(&only, 1), [&](std::span<const std::int32_t> tokens) {
      const std::size_t count = std::min(hidden + tokens.size(), most);
      if (count <= streamed.tokens()) return count < most;
      streamed.add(tokens.subspan(streamed.tokens() - hidden, count - streamed.tokens()));
      const std::string_view all = streamed.text();
      const std::string_view after = all.substr(std::min(all.size(), text.shown));
      // No stop begins in a part that the sink already has.
      const std::string_view unsent = after.substr(std::min(sent, after.size()));
      const std::size_t stop = stop_in(unsent, options_.stops);
      text.stopped = stop != unsent.npos;
      send(after, text.stopped ? sent + stop : settled_bytes(after, options_.stops));
      return !text.stopped && count < most;
    });
    if (text.tokens.size() > streamed.tokens()) {
      streamed.add(std::span<const std::int32_t>(text.tokens).subspan(streamed.tokens()));
    }
  }
  Continuation found = finished(text);
  send(found.text, found.text.size());
  return found;
}

}  // namespace nunchi
