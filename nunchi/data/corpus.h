// Pairs on disk: lines of two files, two columns of one file, or features and lines; or a text
// without pairs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nunchi/data/lines.h"

namespace nunchi {

// One of four forms:
//   source, target     two files; line n of one belongs to line n of the other
//   features, target   a folder of .npy files (data/npy.h), sorted by name; file n belongs to line
//                      n of the target
//   tsv                a file whose columns are separated by tabs
//   text               a file whose lines are targets without a source
// Files of lines are plain text, gzip or xz.
struct CorpusPart {
  std::filesystem::path source;
  std::filesystem::path features;
  std::filesystem::path target;
  std::filesystem::path tsv;
  std::filesystem::path text;
  int source_column = 1;  // columns of the tsv, counted from 1
  int target_column = 2;
  // Only these lines of the files are used, counted from 1. A last_line of 0: all to the end.
  std::int64_t first_line = 1;
  std::int64_t last_line = 0;
  double weight = 1;  // how often its pairs occur in an epoch; see data/batch_order.h
};

// The part's files: source and target, the features and the target, the tsv, or the text. Throws
// UsageError unless the part has one of the four forms, and Error when there are no features.
std::vector<std::filesystem::path> files_of(const CorpusPart& part);

// The files of these parts, separated by commas, for messages.
std::string names_of(std::span<const CorpusPart> parts);

// The noun for the part's lines: "pair" or "line".
inline const char* kind_of_line(const CorpusPart& part) {
  return part.text.empty() ? "pair" : "line";
}

struct RawPair {
  std::string source;              // empty for features and for a text
  std::filesystem::path features;  // empty unless the source consists of features
  std::string target;
  // A line was longer than LineReader keeps, so the two sides may not belong together.
  bool cut = false;
};

// Reads the pairs of a part in order; LineReader defines what a line is.
//
// Throws Error when the files end before the part's first line, when the numbers of feature files
// and lines differ, when the two files have unequal numbers of lines (thrown at the end of the
// shorter one, with both counts), and when a line of a tsv has too few columns. An empty line of a
// tsv is a pair of empty sentences. Lines after the part's last line are not read.
class PairReader {
 public:
  explicit PairReader(const CorpusPart& part);

  // Returns false at the end.
  bool next(RawPair& pair);

  // The line number of the last pair, counted from 1.
  std::int64_t line_number() const { return first_.line_number(); }
  // Bytes of the files read so far.
  std::int64_t consumed() const;

 private:
  bool next_line(RawPair& pair);
  bool next_from_two_files(RawPair& pair);
  bool next_from_tsv(RawPair& pair);
  bool next_from_text(RawPair& pair);
  bool next_from_features(RawPair& pair);
  [[noreturn]] void fail_unequal();

  std::vector<std::filesystem::path>
      features_;                      // one file for each line; empty unless sources are features
  LineReader first_;                  // the source, the features' target, the tsv, or the text
  std::optional<LineReader> second_;  // the target
  std::int64_t first_line_, last_line_;
  bool is_text_ = false;
  int source_column_ = 0;
  int target_column_ = 0;
  std::string line_;
  // The first line that is empty on one side only; 0: none so far.
  std::int64_t one_sided_line_ = 0;
  bool source_is_empty_ = false;
};

}  // namespace nunchi
