#include "nunchi/models/format/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "nunchi/base/atomic_file.h"
#include "nunchi/base/error.h"
#include "nunchi/models/format/safetensors_header.h"

namespace nunchi {

using safetensors::kLengthBytes;

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  MappedFile mapping(path);
  SafetensorsFile file = parse_safetensors(mapping.bytes(), path.string());
  file.mapping_ = std::move(mapping);
  return file;
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto name_of = [this](std::size_t i) -> std::string_view { return entries_[i].name; };
  const auto found = std::ranges::lower_bound(by_name_, name, {}, name_of);
  if (found == by_name_.end() || name_of(*found) != name) return nullptr;
  return &entries_[*found];
}

SafetensorsFile parse_safetensors(std::span<const std::byte> bytes,
                                  const std::string& display_name) {
  if (bytes.size() < kLengthBytes) {
    throw Error(
        fmt::format("{}: {} bytes are too few for a safetensors file", display_name, bytes.size()));
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  }
  const auto rest = bytes.subspan(kLengthBytes);
  if (length > rest.size()) {
    throw Error(
        fmt::format("{}: the header should have {} bytes but only {} follow: the file is "
                    "cut short or is not a safetensors file",
                    display_name, length, rest.size()));
  }
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), length);
  const auto data = rest.subspan(length);

  safetensors::Header header = safetensors::read_header(text, data.size(), display_name);
  SafetensorsFile file;
  file.entries_ = std::move(header.entries);
  file.by_name_ = std::move(header.by_name);
  file.metadata_ = std::move(header.metadata);
  for (std::size_t i = 0; i < file.entries_.size(); ++i) {
    const safetensors::Range& range = header.ranges[i];
    file.entries_[i].bytes = data.subspan(range.begin, range.end - range.begin);
  }
  return file;
}

void write_safetensors(const std::filesystem::path& path, std::span<const SafetensorsEntry> entries,
                       const std::map<std::string, std::string>& metadata) {
  const std::string text = safetensors::header_text(entries, metadata, path.string());
  std::uint64_t data_bytes = 0;
  for (const SafetensorsEntry& entry : entries) data_bytes += entry.bytes.size();
  safetensors::read_header(text, data_bytes, path.string());

  std::array<std::byte, kLengthBytes> length;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length[i] = static_cast<std::byte>(std::uint64_t{text.size()} >> (8 * i));
  }
  AtomicFile file(path);
  file.write(length);
  file.write(std::as_bytes(std::span(text)));
  for (const SafetensorsEntry& entry : entries) file.write(entry.bytes);
  file.commit();
}

}  // namespace nunchi
