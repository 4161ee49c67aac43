// Going on with texts, for models that are language models.
//
//   const Pipeline pipeline = Pipeline::open("runs/shakespeare-char");
//   pipeline.generator().generate("ROMEO:").text
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "nunchi/decoding/search.h"
#include "nunchi/inference/streamed_text.h"
#include "nunchi/models/format/tokenizers.h"

namespace nunchi {

struct GeneratorOptions {
  SearchOptions search;                 // its max_length: tokens after the prompt
  std::vector<std::string> stops = {};  // a text ends before the first of them
  std::int64_t batch_prompts = 64;      // that are gone on with at once
};

struct Prompt {
  std::string text;         // empty: the beginning of a line
  std::int64_t number = 0;  // decides the draws
  bool cut = false;         // its end was lost before it came here
};

struct Continuation {
  std::string text;            // what comes after the prompt
  Tokens tokens;               // of it, and of the stop if it came
  double log_probability = 0;  // of the tokens
};

// Gets the next part of a text as soon as it is certain. False: nobody wants more.
using TextSink = std::function<bool(std::string_view part)>;

// What happened to prompts that were not as they should be; each counts once.
struct PromptCounts {
  std::int64_t repaired = 0;  // invalid UTF-8
  std::int64_t cut = 0;       // longer than the model can look back: only the end was read
  std::int64_t lost = 0;      // came without their end
};

// Used by one thread at a time. Context, model and tokenizers outlive it.
//
// A model that knows so many positions and no more goes on for as long as one likes: when they are
// full, the last half of the text is what it sees of it from there on.
class Generator {
 public:
  // Throws Error when the model is no language model or the tokenizer does not fit it, and
  // UsageError for options that make no sense.
  Generator(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
            const GeneratorOptions& options);

  // One for each prompt, in their order; it does not depend on the others.
  std::vector<Continuation> generate(std::span<const Prompt> prompts);
  // Of one prompt; with a sink, part by part as it comes unless a beam is searched with.
  Continuation generate(const Prompt& prompt, const TextSink& sink = {});
  Continuation generate(const std::string& prompt) { return generate(Prompt{prompt}); }

  // Of all prompts so far.
  const PromptCounts& counts() const { return counts_; }

 private:
  struct Text;
  Text begun(const Prompt& prompt);
  void go_on(std::span<Text*> texts, const SearchWatch& watch);
  bool is_done(const Text& text) const;
  std::size_t seen_of(const Text& text) const;
  std::string after_prompt(const Text& text) const;
  Continuation finished(const Text& text) const;

  const LanguageModel& model_;
  ContextBase& context_;
  const Tokenizer& tokenizer_;
  GeneratorOptions options_;
  DecoderTokens tokens_;  // a text begins with its prompt and has no end
  Searcher searcher_;
  PromptCounts counts_;
};

}  // namespace nunchi
