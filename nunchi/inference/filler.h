// Filling in the masked tokens of a text.
//
//   const Pipeline pipeline = Pipeline::open("runs/bert-europarl");
//   pipeline.filler().fill("The [MASK] is closed.").text
#pragma once

#include <span>
#include <string>
#include <vector>

#include "nunchi/inference/text_reader.h"

namespace nunchi {

struct FillerOptions {
  ReaderOptions reader;
  std::int64_t top = 5;  // candidates for each mask
};

struct Candidate {
  std::string piece;  // as in the vocabulary: "▁debate"
  std::string text;   // "debate"
  double probability = 0;
};

struct FilledLine {
  std::string text;  // each mask replaced by its most likely candidate; one line
  std::vector<std::vector<Candidate>> masks;  // candidates of each mask, most likely first
  std::int64_t unread_masks = 0;  // masks beyond the maximum length, which stay in the text
};

// The tokens of a text, without <s> and </s>, in which any known spelling of the mask becomes the
// tokenizer's `mask`. A model reads the first `max_tokens`; the rest is as in the text.
struct MaskedTokens {
  Tokens tokens, rest;
};
MaskedTokens tokens_with_masks(const Tokenizer& tokenizer, std::int32_t mask,
                               const std::string& text, std::size_t max_tokens);

// Used by one thread at a time. Context, model and tokenizers outlive it.
//
// A mask is one token together with the space before it: "a [MASK]" can become "a debate", and
// "a[MASK]" can become "as". Masks are filled in independently of each other.
class Filler {
 public:
  // Throws Error when the model cannot predict masked tokens, or when the tokenizer does not fit it
  // or has no mask token.
  Filler(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
         const FillerOptions& options);

  // One result for each line, in order. A line's result does not depend on the other lines. A line
  // without masks is left unchanged. Of a line that is too long only the beginning is read; the
  // rest is left unchanged.
  std::vector<FilledLine> fill(std::span<const SourceLine> lines);
  FilledLine fill(const std::string& text);

  // Totals over all calls.
  const LineCounts& counts() const { return reader_.counts(); }
  // Lines with words but without a mask.
  std::int64_t without_mask() const { return without_mask_; }

 private:
  struct Line {
    Tokens tokens;  // <s> … </s>
    Tokens rest;    // tokens beyond the maximum length
  };
  Line tokenize(const SourceLine& line);
  void fill_batch(std::span<const std::size_t> batch, std::span<const Line> lines,
                  std::vector<FilledLine>& filled) const;

  const MaskedLanguageModel& model_;
  ContextBase& context_;
  TextReader reader_;
  std::int64_t top_;
  std::int32_t mask_;
  std::int64_t without_mask_ = 0;
};

}  // namespace nunchi
