// Turns a corpus on disk into tokenised pairs and caches them for later runs.
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
  lines,    // each line is one example; empty and too long lines are left out
  windows,  // all lines, joined by line ends, are one text; see BatchOptions::text_window
};

struct PairLimits {
  // Maximum tokens of each side, </s> included; longer pairs are left out. 0: no limit.
  std::int64_t max_length = 256;
  // Pairs whose token counts, without </s>, differ by more than this factor are left out. 0: no
  // limit.
  double max_ratio = 0;
};

struct PairTokenizers {
  const Tokenizer& source;
  const Tokenizer& target;
};

struct PrepareProgress {
  enum class Stage { reading, tokenizing };
  Stage stage = Stage::reading;
  double fraction = 0;     // how much of the stage is done, 0 to 1
  std::int64_t lines = 0;  // lines tokenised so far
};

struct PrepareOptions {
  PairLimits limits;
  TextCut cut = TextCut::lines;  // for parts that are texts
  std::filesystem::path cache;   // the cache folder; created if it is missing
  int threads = 1;               // tokenising threads; one more reads and writes
  // Called from time to time on the calling thread. If it throws, the work ends and leaves no file.
  std::function<void(const PrepareProgress&)> progress;
};

// The pairs of a part, from the cache folder if they are there. Sources that consist of features
// are copied to a second file beside the tokens. A file's name is a hash of the corpus files'
// bytes, the tokenizers and the limits, so that a change to any of them makes a new file; a damaged
// file is written again. The result does not depend on the number of threads.
//
// Throws Error when the corpus cannot be read, when it changes while it is read, or when the cache
// cannot be written.
PairStore prepare_pairs(const CorpusPart& part, const PairTokenizers& tokenizers,
                        const PrepareOptions& options);

// The width of a part's features, taken from its first file; 0 when its sources are text.
std::int64_t feature_width(const CorpusPart& part);

// prepare_pairs() for each part.
std::vector<PairStore> prepare_pairs(std::span<const CorpusPart> parts,
                                     const PairTokenizers& tokenizers,
                                     const PrepareOptions& options);

}  // namespace nunchi
