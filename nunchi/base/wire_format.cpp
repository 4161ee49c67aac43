#include "nunchi/base/wire_format.h"

#include "nunchi/base/error.h"

namespace nunchi {

std::string_view WireReader::take(std::uint64_t bytes) {
  if (bytes > message_.size() - offset_) throw Error("a field reaches past the end");
  const std::string_view taken = message_.substr(offset_, bytes);
  offset_ += bytes;
  return taken;
}

std::uint64_t WireReader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(1).front());
    if (shift == 63 && byte > 1) break;
    value |= std::uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
  throw Error("a number has more than 64 bits");
}

std::uint64_t WireReader::fixed(std::size_t bytes) {
  std::uint64_t value = 0;
  int shift = 0;
  for (const char byte : take(bytes)) {
    value |= std::uint64_t{static_cast<unsigned char>(byte)} << shift;
    shift += 8;
  }
  return value;
}

std::optional<WireField> WireReader::next() {
  if (offset_ == message_.size()) return std::nullopt;
  const std::uint64_t tag = varint();
  const std::uint64_t number = tag >> 3;
  constexpr std::uint64_t kMaxNumber = (1u << 29) - 1;
  if (number == 0 || number > kMaxNumber) throw Error("a field has an invalid number");
  WireField field{.number = static_cast<std::uint32_t>(number),
                  .type = static_cast<WireType>(tag & 7)};
  switch (field.type) {
    case WireType::varint:
      field.value = varint();
      return field;
    case WireType::fixed64:
      field.value = fixed(8);
      return field;
    case WireType::bytes:
      field.bytes = take(varint());
      return field;
    case WireType::fixed32:
      field.value = fixed(4);
      return field;
  }
  throw Error("a field has an invalid type");
}

void append_little_endian(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

void WireWriter::append_varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) message_.push_back(static_cast<char>(value | 0x80));
  message_.push_back(static_cast<char>(value));
}

void WireWriter::tag(std::uint32_t field, WireType type) {
  append_varint(std::uint64_t{field} << 3 | static_cast<std::uint64_t>(type));
}

WireWriter& WireWriter::varint(std::uint32_t field, std::uint64_t value) {
  tag(field, WireType::varint);
  append_varint(value);
  return *this;
}

WireWriter& WireWriter::fixed32(std::uint32_t field, std::uint32_t value) {
  tag(field, WireType::fixed32);
  append_little_endian(message_, value, 4);
  return *this;
}

WireWriter& WireWriter::fixed64(std::uint32_t field, std::uint64_t value) {
  tag(field, WireType::fixed64);
  append_little_endian(message_, value, 8);
  return *this;
}

WireWriter& WireWriter::bytes(std::uint32_t field, std::string_view value) {
  tag(field, WireType::bytes);
  append_varint(value.size());
  message_ += value;
  return *this;
}

}  // namespace nunchi
