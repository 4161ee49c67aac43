#include "nunchi/inference/generator.h"

#include <algorithm>
#include <numeric>

#include "nunchi/base/error.h"
#include "nunchi/text/unicode.h"

namespace nunchi {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";

// Where the first of the stops begins; npos: nowhere.
std::size_t stop_in(std::string_view text, std::span<const std::string> stops) {
  std::size_t first = text.npos;
  for (const std::string& stop : stops) first = std::min(first, text.find(stop));
  return first;
}

// How much of a text is certain while more may come: not the beginning of what could become a stop,
// nor bytes that could become a character.
std::size_t certain(std::string_view text, std::span<const std::string> stops) {
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
    if (stop.empty()) throw UsageError("a text cannot stop at an empty text.");
  }
  return options.search;
}

}  // namespace

// A text that is gone on with.
struct Generator::Text {
  std::size_t prompt = 0;   // tokens of it
  std::size_t shown = 0;    // bytes of the prompt, as its tokens say it
  std::int64_t number = 0;  // for draws
  std::int64_t round = 0;
  Tokens tokens = {};               // prompt and what came
  std::vector<double> scores = {};  // log-probabilities of what came
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
  if (model_.max_length() < 2) throw Error("a model that knows one position cannot go on.");
}

Generator::Text Generator::begun(const Prompt& prompt) {
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

// How many of its last tokens the model sees.
std::size_t Generator::seen_of(const Text& text) const {
  const auto room = static_cast<std::size_t>(model_.max_length());
  return text.tokens.size() < room ? text.tokens.size() : (room + 1) / 2;
}

// As far as the model's positions reach.
void Generator::go_on(std::span<Text*> texts, const SearchWatch& watch) {
  std::vector<Tokens> prefixes;
  std::vector<std::int64_t> numbers;
  for (const Text* text : texts) {
    const auto seen = text->tokens.end() - static_cast<std::ptrdiff_t>(seen_of(*text));
    prefixes.emplace_back(seen, text->tokens.end());
    // Draws are told apart by a text's number and round.
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

// Several tokens may have come at once: those after the one that completes a stop do not count.
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
  for (const Prompt& prompt : prompts) texts.push_back(begun(prompt));
  const auto at_once = static_cast<std::size_t>(options_.batch_prompts);
  for (std::size_t first = 0; first < texts.size(); first += at_once) {
    while (true) {
      std::vector<Text*> open;
      for (std::size_t i = first; i < std::min(first + at_once, texts.size()); ++i) {
        if (!is_done(texts[i])) open.push_back(&texts[i]);
      }
      if (open.empty()) break;
      go_on(open, {});
      for (Text* text : open) {
        text->stopped = stop_in(after_prompt(*text), options_.stops) != std::string::npos;
      }
    }
  }
  std::vector<Continuation> found;
  for (const Text& text : texts) found.push_back(finished(text));
  return found;
}

Continuation Generator::generate(const Prompt& prompt, const TextSink& sink) {
  if (options_.search.beam_size > 1) {
    const Continuation found = generate(std::span(&prompt, 1)).front();
    if (sink) sink(found.text);
    return found;
  }
  Text text = begun(prompt);
  StreamedText streamed(tokenizer_);
  streamed.add(text.tokens);
  std::size_t told = 0;
  const auto tell = [&](std::string_view after, std::size_t length) {
    if (sink && length > told && !sink(after.substr(told, length - told))) text.stopped = true;
    told = std::max(told, length);
  };
  const std::size_t most = text.prompt + static_cast<std::size_t>(options_.search.max_length);
  while (!is_done(text)) {
    // What the search shows begins with the text's last tokens.
    const std::size_t hidden = text.tokens.size() - seen_of(text);
    Text* only = &text;
    go_on(std::span(&only, 1), [&](std::span<const std::int32_t> tokens) {
      const std::size_t count = std::min(hidden + tokens.size(), most);
      if (count <= streamed.tokens()) return count < most;
      streamed.add(tokens.subspan(streamed.tokens() - hidden, count - streamed.tokens()));
      const std::string_view all = streamed.text();
      const std::string_view after = all.substr(std::min(all.size(), text.shown));
      // What was told is certain: no stop begins there.
      const std::string_view untold = after.substr(std::min(told, after.size()));
      const std::size_t stop = stop_in(untold, options_.stops);
      text.stopped = stop != untold.npos;
      tell(after, text.stopped ? told + stop : certain(after, options_.stops));
      return !text.stopped && count < most;
    });
    if (text.tokens.size() > streamed.tokens()) {
      streamed.add(std::span<const std::int32_t>(text.tokens).subspan(streamed.tokens()));
    }
  }
  Continuation found = finished(text);
  tell(found.text, found.text.size());
  return found;
}

}  // namespace nunchi
