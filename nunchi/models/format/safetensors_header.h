// The header of a safetensors file: see safetensors.h for the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nunchi/models/format/safetensors.h"

namespace nunchi::safetensors {

inline constexpr std::size_t kLengthBytes = 8;  // the header's length, at the start of the file

// A header that follows the rules. The tensors' offsets count from the first byte of the data.
struct Header {
  std::vector<StoredTensor> tensors;
  std::vector<std::size_t> by_name;  // indices into tensors, in the order of the names
  std::map<std::string, std::string> metadata;
};

// Throws Error, naming `file`, for a header that is too long to be read.
void check_header_length(std::uint64_t bytes, const std::string& file);
// Throws Error, naming `file`, for a header that breaks a rule or does not match the size of the
// data.
Header read_header(std::string_view text, std::uint64_t data_bytes, const std::string& file);

// The header of these entries in this order, padded so that the data is aligned to 64 bytes. Throws
// Error for names and texts that are not UTF-8.
std::string header_text(std::span<const SafetensorsEntry> entries,
                        const std::map<std::string, std::string>& metadata,
                        const std::string& file);

}  // namespace nunchi::safetensors
