// Continuing texts with a language model.
//
//   const Pipeline pipeline = Pipeline::open("runs/shakespeare-char");
//   pipeline.generator().generate("ROMEO:").text
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "nunchi/decoding/searcher.h"
#include "nunchi/inference/streamed_text.h"
#include "nunchi/models/format/tokenizers.h"

namespace nunchi {

struct GeneratorOptions {
  SearchOptions search;                 // its max_length: tokens after the prompt
  std::vector<std::string> stops = {};  // a continuation ends before the first of these strings
  std::int64_t batch_prompts = 64;      // prompts continued in one batch
  // A continuation also ends where the model generates the end token. Not where that token is only
  // the line break of the texts that the model learned from: the tokenizer has no other line break,
  // and generation_config.json has no eos_token_id. False: the end token is a token like others.
  bool stop_at_end = true;
};

struct Prompt {
  std::string text;         // empty: start at the beginning of a line
  std::int64_t number = 0;  // selects the random draws when sampling
  bool cut = false;         // the reader already dropped the end of the prompt
};

struct Continuation {
  std::string text;            // without the prompt and without the stop
  Tokens tokens;               // without the prompt, with the stop, without the end token
  double log_probability = 0;  // of `tokens` and, if it ended the text, the end token
  bool ended = false;          // by the end token
};

// Callback that gets the next part of a text as soon as it cannot change any more. Returns false to
// end the text.
using TextSink = std::function<bool(std::string_view part)>;

// How many prompts could not be used unchanged; a prompt counts at most once in each.
struct PromptCounts {
  std::int64_t repaired = 0;  // invalid UTF-8 replaced by U+FFFD
  std::int64_t cut = 0;       // longer than the model's context: only the end was used
  std::int64_t lost = 0;      // the reader dropped the end (Prompt::cut)
};

// The tokens of a prompt. Each line is encoded separately, as in training. An empty prompt is the
// end of a line.
Tokens prompt_tokens(const Tokenizer& tokenizer, std::string_view text);
// The special tokens of a continuation: it has no start token, because a text begins with its
// prompt. See GeneratorOptions::stop_at_end.
DecoderTokens continuation_tokens(const Tokenizers& tokenizers, bool stop_at_end = true);

// Used by one thread at a time. Context, model and tokenizers outlive it.
//
// Texts may grow longer than the model's context: when it is full, the model continues from the
// text's last tokens, half a context of them.
class Generator {
 public:
  // Throws Error when the model is not a language model or the tokenizer does not fit it, and
  // UsageError for options that contradict each other.
  Generator(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
            const GeneratorOptions& options);

  // One continuation for each prompt, in order. It does not depend on the other prompts.
  std::vector<Continuation> generate(std::span<const Prompt> prompts);
  // The continuation of one prompt. The sink gets the text part by part as it is generated. With a
  // beam, whose best hypothesis may still change, it gets the whole text at the end.
  Continuation generate(const Prompt& prompt, const TextSink& sink = {});
  Continuation generate(const std::string& prompt) { return generate(Prompt{prompt}); }

  // Totals over all calls.
  const PromptCounts& counts() const { return counts_; }

 private:
  struct Text;
  Text start_text(const Prompt& prompt);
  void extend(std::span<Text*> texts, const SearchWatch& watch);
  bool is_done(const Text& text) const;
  std::size_t visible_tokens(const Text& text) const;
  std::string after_prompt(const Text& text) const;
  Continuation finished(const Text& text) const;

  const LanguageModel& model_;
  ContextBase& context_;
  const Tokenizer& tokenizer_;
  GeneratorOptions options_;
  DecoderTokens tokens_;  // no start token: a text begins with its prompt
  Searcher searcher_;
  PromptCounts counts_;
};

}  // namespace nunchi
