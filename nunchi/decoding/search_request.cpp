#include "nunchi/decoding/search_request.h"

#include <algorithm>
#include <string>

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// The maximum length of a target in tokens, prefix included.
std::int64_t max_target_length(const SequenceModel& model, const SearchOptions& options,
                               std::int64_t source_length) {
  constexpr std::int64_t kSourceFactor = 3, kExtraTokens = 20;
  const std::int64_t allowed =
      std::max(options.min_length,
               std::min(options.max_length, kSourceFactor * source_length + kExtraTokens));
  return std::clamp<std::int64_t>(allowed, 1, model.max_length() - 1);
}

std::int64_t max_text_length(const SequenceModel& model, const SearchOptions& options,
                             std::int64_t prefix_length) {
  return std::min(prefix_length + options.max_length, model.max_length());
}

std::int64_t checked_sentence_count(const GeneratingModel& model, const SearchRequest& request) {
  if (request.source.has_value() != (model.encoder_decoder != nullptr)) {
    throw Error(request.source ? "a language model takes no source."
                               : "an encoder-decoder needs a source, but got none.");
  }
  const std::int64_t sentences =
      request.source ? request.source->rows().sentences : std::ssize(request.prefixes);
  const auto check_count = [&](std::size_t count, const char* things) {
    if (count == 0 || count == index(sentences)) return;
    throw Error(std::to_string(sentences) + " sentences came with " + std::to_string(count) + " " +
                things + ".");
  };
  check_count(request.prefixes.size(), "prefixes");
  check_count(request.phrases.size(), "lists of phrases");
  check_count(request.numbers.size(), "numbers");
  if (request.options.size() != 1) check_count(request.options.size(), "options");
  if (request.options.empty()) throw Error("sentences came without options (internal error).");
  return sentences;
}

void check_prefix(const Tokens& prefix, const SequenceModel& model, const DecoderTokens& tokens) {
  if (tokens.start == kNoToken && prefix.empty()) {
    throw Error("a search without a start token needs prefixes, but one of them is empty.");
  }
  for (const std::int32_t id : prefix) {
    if (id >= 0 && id < model.target_vocabulary()) continue;
    throw Error("the prefix contains token " + std::to_string(id) +
                ", which is not in a vocabulary of " + std::to_string(model.target_vocabulary()) +
                ".");
  }
}

}  // namespace

std::vector<PlannedSentence> plan_request(const GeneratingModel& generating,
                                          const SearchRequest& request,
                                          const DecoderTokens& tokens) {
  const SequenceModel& model = generating.model();
  const std::int64_t sentences = checked_sentence_count(generating, request);
  std::vector<PlannedSentence> planned;
  for (std::int64_t b = 0; b < sentences; ++b) {
    PlannedSentence& sentence = planned.emplace_back();
    sentence.options = request.options[request.options.size() == 1 ? 0 : index(b)];
    sentence.options.check();
    sentence.prefix =
        tokens.with_forced_first(request.prefixes.empty() ? Tokens() : request.prefixes[index(b)]);
    check_prefix(sentence.prefix, model, tokens);
    sentence.number = request.numbers.empty() ? b : request.numbers[index(b)];
    sentence.source = b;
    const std::int64_t prefix_length = std::ssize(sentence.prefix);
    std::int64_t max_length = 0;
    if (request.source) {
      sentence.source_length = request.source->rows().lengths[index(b)];
      max_length = max_target_length(model, sentence.options, sentence.source_length);
    } else {
      max_length = max_text_length(model, sentence.options, prefix_length);
    }
    if (!request.phrases.empty()) sentence.phrases = request.phrases[index(b)];
    check(sentence.phrases, model.target_vocabulary(), sentence.options);
    // A prefix is never cut, and at least one token follows it; all phrases have to fit.
    sentence.max_length = std::max(
        max_length, prefix_length + std::max<std::int64_t>(1, least_tokens(sentence.phrases)));
    sentence.prompt = prefix_length + (tokens.start != kNoToken ? 1 : 0);
    // The last token is not read; the start token of a target takes a position.
    if (sentence.max_length > model.max_length() - (request.source ? 1 : 0)) {
      const std::string phrases =
          sentence.phrases.empty()
              ? ""
              : " with phrases of " + std::to_string(least_tokens(sentence.phrases)) + " tokens";
      throw Error("a prefix of " + std::to_string(prefix_length) + " tokens" + phrases +
                  " is too long for a model with " + std::to_string(model.max_length()) +
                  " positions.");
    }
  }
  return planned;
}

}  // namespace nunchi
