// Tokenised pairs in a file. The index is kept in memory; tokens are read when they are used.
//
//   64 bytes   "nunchi pairs 2\n" and zeros
//   4 * T      the tokens of all pairs: source, </s>, target; source, </s>, target; ... Examples of
//              a text have no source: target; target; ...
//   8 * (N+1)  the index of each pair's first token, then T
//   4 * N      the length of each source with its </s>; all 0 without sources
//   the rest   the footer, words of 8 bytes: magic, key (2), N, T, the report, the tokens' digest
//              (2), the file's size, the digest (2) of everything from the table of first tokens to
//              here
//
// Zeros pad each section to a multiple of 8 bytes; numbers are little-endian. The footer comes last
// so that a writer passes over the file once. Readers and writers need 12 bytes of memory for each
// pair.
//
// The reader trusts nothing: it checks every size, offset and length against the file when it opens
// it, and every read, so that no file can make it read outside of its own bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nunchi/base/random_access_file.h"
#include "nunchi/data/feature_store.h"
#include "nunchi/data/hashed_file.h"
#include "nunchi/text/tokens.h"

namespace nunchi {

// Counts of a corpus's lines. Each line is kept, or left out and counted under the first reason
// that applies.
struct PairReport {
  std::int64_t lines = 0;
  std::int64_t kept = 0;
  std::int64_t cut = 0;              // a line longer than LineReader keeps
  std::int64_t empty = 0;            // a side without tokens
  std::int64_t too_long = 0;         // more tokens than max_length
  std::int64_t unequal_lengths = 0;  // token counts that differ by more than max_ratio
  std::int64_t repaired = 0;         // kept, with invalid UTF-8 replaced by U+FFFD

  PairReport& operator+=(const PairReport& other);
  friend bool operator==(const PairReport&, const PairReport&) = default;
};

// "29,000 lines: 28,990 pairs kept, 10 left out (3 empty, 7 too long); 1 had invalid UTF-8, ..."
// `kept` is the noun for a kept line: "pair" or, for a text, "line".
std::string to_text(const PairReport& report, const char* kept = "pair");

struct PairTokens {
  // Ends with </s>; empty if the source consists of features or there is none.
  std::span<const std::int32_t> source;
  std::span<const std::int32_t> target;  // without <s> and </s>
};

// Immutable; any number of threads may read it at the same time. Movable.
class PairStore {
 public:
  // Throws Error when the file is missing or not a valid file of pairs. Does not read the
  // tokens.
  static PairStore open(const std::filesystem::path& path);
  explicit PairStore(RandomAccessFile file);

  std::int64_t size() const { return static_cast<std::int64_t>(source_lengths_.size()); }
  // Reads a pair into `buffer`, which the result refers to. Throws Error when the file has become
  // shorter or cannot be read.
  PairTokens read(std::int64_t pair, Tokens& buffer) const;
  // One side of read().
  Tokens source(std::int64_t pair) const;
  Tokens target(std::int64_t pair) const;
  // The tokens of all pairs in order are, without sources, one long text.
  std::int64_t token_count() const { return static_cast<std::int64_t>(offsets_.back()); }
  void read_text(std::int64_t first, std::span<std::int32_t> into) const;
  // The features of the sources; null when the sources are tokens or there are none.
  const FeatureStore* features() const { return features_ ? &*features_ : nullptr; }
  bool has_sources() const {
    return features_ || (!source_lengths_.empty() && source_lengths_.front() > 0);
  }
  std::int64_t source_length(std::int64_t pair) const;  // tokens, or rows of features
  std::int64_t target_length(std::int64_t pair) const;

  // Identifies the data that the pairs were made from; equal keys mean equal pairs.
  const Digest& key() const { return key_; }
  const PairReport& report() const { return report_; }
  // Reads all tokens and compares them with their digest.
  bool tokens_are_intact() const { return tokens_->are_intact(); }
  // Throws Error when the file of the tokens or of the features was written to since it was opened
  // and is damaged. To be called between reading pairs and using them.
  void check_intact() const;

  // Makes `features` the sources of these pairs, which must have none. Throws Error when the
  // numbers of examples and pairs differ.
  void attach(FeatureStore features);

 private:
  std::vector<std::uint64_t> offsets_;
  std::vector<std::uint32_t> source_lengths_;
  Digest key_;
  PairReport report_;
  std::optional<StoredValues> tokens_;  // always set
  std::optional<FeatureStore> features_;
};

// Writes such a file, one pair at a time. The file exists only after commit(). Throws Error with
// the system's reason when it cannot be written.
class PairWriter {
 public:
  PairWriter(const std::filesystem::path& path, const Digest& key);

  // `tokens` contains the source, </s> and the target. `source_length` counts the source and its
  // </s>; 0 without a source.
  void add(std::span<const std::int32_t> tokens, std::uint32_t source_length);
  void commit(const PairReport& report);

 private:
  void flush();

  HashedFileWriter file_;
  Digest key_;
  std::vector<std::int32_t> buffer_;
  std::vector<std::uint64_t> offsets_{0};
  std::vector<std::uint32_t> source_lengths_;
};

}  // namespace nunchi
