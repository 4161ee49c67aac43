// Writes files of features in NumPy's format.
#pragma once

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "nunchi/data/feature_batch.h"

namespace nunchi::testing {

// The bytes of a file with this header and these values; `version` is the format version.
inline std::string npy_bytes(const std::string& header, std::span<const float> values,
                             int version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    bytes += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  }
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return bytes;
}

inline std::string npy_header(std::int64_t rows, std::int64_t columns) {
  return "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " +
         std::to_string(columns) + "), }\n";
}

inline void write_npy(const std::filesystem::path& path, const Features& features) {
  std::ofstream(path, std::ios::binary)
      << npy_bytes(npy_header(features.rows(), features.width), features.values);
}

}  // namespace nunchi::testing
