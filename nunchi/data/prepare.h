// From a corpus on disk to tokenised pairs, once: later runs find them in a folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "nunchi/data/corpus.h"
#include "nunchi/data/pair_store.h"
#include "nunchi/text/tokenizer.h"

namespace nunchi {

// How the lines of a text become examples.
enum class TextCut : std::uint8_t {
  lines,    // each is one; those without words or too long are left out
  windows,  // all of them, joined by line ends, are one text; see BatchOptions::text_window
};

struct PairLimits {
  // Tokens of a side, </s> included; longer pairs are left out. 0: no limit.
  std::int64_t max_length = 256;
  // Pairs whose token counts, without </s>, differ by more than this factor are left out. 0: none.
  double max_ratio = 0;
};

struct PairTokenizers {
  const Tokenizer& source;
  const Tokenizer& target;
};

struct PrepareProgress {
  enum class Stage { reading, tokenizing };
  Stage stage = Stage::reading;
  double fraction = 0;     // of the stage, 0 to 1
  std::int64_t lines = 0;  // tokenised so far
};

struct PrepareOptions {
  PairLimits limits;
  TextCut cut = TextCut::lines;  // of parts that are texts
  std::filesystem::path cache;   // made if it is missing
  int threads = 1;               // that tokenise, beside the one that reads and writes
  // Called now and then on the thread that prepares. What it throws ends the work, and no file
  // stays.
  std::function<void(const PrepareProgress&)> progress;
};

// The pairs of a part, from the cache folder if they are there; sources that consist of features
// are copied to a second file beside the tokens. The file's name is a hash of the corpus files'
// bytes, the tokenizers and the limits, so that a change of any of them is noticed; a file there
// that is damaged is made again. The result does not depend on the number of threads.
//
// Throws Error when the corpus cannot be read, changes meanwhile, or the cache cannot be written.
PairStore prepare_pairs(const CorpusPart& part, const PairTokenizers& tokenizers,
                        const PrepareOptions& options);

// Columns of a part's features, as its first file has them; 0 when its sources are no features.
std::int64_t feature_width(const CorpusPart& part);

// The same for each part.
std::vector<PairStore> prepare_pairs(std::span<const CorpusPart> parts,
                                     const PairTokenizers& tokenizers,
                                     const PrepareOptions& options);

}  // namespace nunchi
