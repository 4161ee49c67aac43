// The features of many examples in one file, mapped into memory.
//
//   64 bytes   "nunchi features 1\n" and zeros
//   4 * R * F  the rows of all examples, f32, one example after another
//   8 * (N+1)  the first row of each example, then R
//   the rest   the footer, words of 8 bytes: magic, key (2), N, R, F, the values' digest (2), the
//              file's size, the digest (2) of everything from the table of first rows to here
//
// Zeros pad each section to a multiple of 8 bytes; numbers are little-endian. The reader trusts
// nothing: it checks every size and offset against the file when it opens it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nunchi/base/mapped_file.h"
#include "nunchi/data/hashed_file.h"

namespace nunchi {

// Immutable; any number of threads may read it at the same time. Movable; spans stay valid as long
// as the store they came from, or the one it was moved to, lives.
class FeatureStore {
 public:
  // Throws Error when the file is missing or not a valid file of features. Does not read the
  // values.
  static FeatureStore open(const std::filesystem::path& path);

  std::int64_t size() const { return std::ssize(first_rows_) - 1; }  // examples
  std::int64_t width() const { return width_; }                      // F
  std::int64_t rows(std::int64_t example) const;
  std::span<const float> values(std::int64_t example) const;  // [rows, F]

  // Identifies the data that the features were made from; equal keys mean equal features.
  const Digest& key() const { return key_; }
  // Reads all values and compares them with their digest.
  bool values_are_intact() const;

 private:
  friend FeatureStore parse_features(std::span<const std::byte>, const std::string&);
  FeatureStore() = default;

  std::optional<MappedFile> mapping_;
  std::span<const float> values_;
  std::span<const std::uint64_t> first_rows_;
  std::int64_t width_ = 0;
  Digest key_;
  Digest values_digest_;
};

// Like FeatureStore::open(), for the bytes of a file at an address that is a multiple of 8, called
// `display_name` in errors. `bytes` must outlive the result.
FeatureStore parse_features(std::span<const std::byte> bytes, const std::string& display_name);

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
