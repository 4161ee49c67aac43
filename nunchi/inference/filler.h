// Filling in what was masked in a text.
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
  std::string piece;  // as the tokenizer has it: "▁debate"
  std::string text;   // "debate"
  double probability = 0;
};

struct FilledLine {
  std::string text;  // with the likeliest candidate in the place of each mask; one line
  std::vector<std::vector<Candidate>> masks;  // of each its candidates, likeliest first
  std::int64_t unread_masks = 0;  // behind the tokens that are read: they stand in the text as such
};

// Used by one thread at a time. Context, model and tokenizers outlive it.
//
// A mask stands for one token with the space before it, so that "a [MASK]" can become "a debate"
// and "a[MASK]" "a" with an ending. Masks are filled in independently of one another.
class Filler {
 public:
  // Throws Error when the model does not fill in, the tokenizer does not fit it or has no mask.
  Filler(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
         const FillerOptions& options);

  // One for each line, in their order; it does not depend on the others. A line without masks stays
  // as it is. Of a line that is too long the beginning is read, and the rest stays as it is.
  std::vector<FilledLine> fill(std::span<const SourceLine> lines);
  FilledLine fill(const std::string& text);

  // Of all lines so far.
  const LineCounts& counts() const { return reader_.counts(); }
  // Lines with words but without a mask.
  std::int64_t without_mask() const { return without_mask_; }

 private:
  struct Line {
    Tokens read;  // <s> … </s>
    Tokens rest;  // what there was no room for
  };
  Line line_of(const SourceLine& line);
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
