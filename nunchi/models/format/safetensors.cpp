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
  return SafetensorsFile(RandomAccessFile(path));
}

SafetensorsFile::SafetensorsFile(RandomAccessFile file) : file_(std::move(file)) {
  const std::string& name = file_.name();
  if (file_.size() < kLengthBytes) {
    throw Error(fmt::format("{}: {} bytes are too few for a safetensors file", name, file_.size()));
  }
  std::array<std::byte, kLengthBytes> length_bytes;
  file_.read(0, length_bytes);
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length |= std::to_integer<std::uint64_t>(length_bytes[i]) << (8 * i);
  }
  const std::uint64_t rest = file_.size() - kLengthBytes;
  if (length > rest) {
    throw Error(
        fmt::format("{}: the header should have {} bytes but only {} follow: the file is "
                    "cut short or is not a safetensors file",
                    name, length, rest));
  }
  safetensors::check_header_length(length, name);
  std::string text(static_cast<std::size_t>(length), '\0');
  file_.read(kLengthBytes, std::as_writable_bytes(std::span(text)));

  safetensors::Header header = safetensors::read_header(text, rest - length, name);
  tensors_ = std::move(header.tensors);
  by_name_ = std::move(header.by_name);
  metadata_ = std::move(header.metadata);
  for (StoredTensor& tensor : tensors_) tensor.offset += kLengthBytes + length;
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto name_of = [this](std::size_t i) -> std::string_view { return tensors_[i].name; };
  const auto found = std::ranges::lower_bound(by_name_, name, {}, name_of);
  if (found == by_name_.end() || name_of(*found) != name) return nullptr;
  return &tensors_[*found];
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
