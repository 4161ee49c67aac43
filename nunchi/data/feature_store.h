// The features of many examples in one file; they are read when they are used.
//
//   64 bytes   "nunchi features 1\n" and zeros
//   4 * R * F  the rows of all examples, f32, one example after another
//   8 * (N+1)  the first row of each example, then R
//   the rest   the footer, words of 8 bytes: magic, key (2), N, R, F, the values' digest (2), the
//              file's size, the digest (2) of everything from the table of first rows to here
//
// Zeros pad each section to a multiple of 8 bytes; numbers are little-endian. The reader trusts
// nothing: it checks every size and offset against the file when it opens it, and every read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "nunchi/base/random_access_file.h"
#include "nunchi/data/hashed_file.h"

namespace nunchi {

// Immutable; any number of threads may read it at the same time. Movable.
class FeatureStore {
 public:
  // Throws Error when the file is missing or not a valid file of features. Does not read the
  // values.
  static FeatureStore open(const std::filesystem::path& path);
  explicit FeatureStore(RandomAccessFile file);

  std::int64_t size() const { return std::ssize(first_rows_) - 1; }  // examples
  std::int64_t width() const { return width_; }                      // F
  std::int64_t rows(std::int64_t example) const;
  // Throws Error when the file has become shorter or cannot be read.
  std::vector<float> values(std::int64_t example) const;  // [rows, F]

  // Identifies the data that the features were made from; equal keys mean equal features.
  const Digest& key() const { return key_; }
  // Reads all values and compares them with their digest.
  bool values_are_intact() const { return values_->are_intact(); }
  // See StoredValues.
  void check_intact() const { values_->check_intact(); }

 private:
  std::vector<std::uint64_t> first_rows_;
  std::int64_t width_ = 0;
  Digest key_;
  std::optional<StoredValues> values_;  // always set
};

// Writes such a file, one example at a time. The file exists only after commit(). Throws Error
// with the system's reason when it cannot be written.
class FeatureWriter {
 public:
  FeatureWriter(const std::filesystem::path& path, const Digest& key, std::int64_t width);

  void add(std::span<const float> values);  // [rows, F]
  void commit();

 private:
  HashedFileWriter file_;
  Digest key_;
  std::uint64_t width_;
  std::vector<std::uint64_t> first_rows_{0};
};

}  // namespace nunchi
