// The wire format of protocol buffers: a message is a sequence of fields, each a tag (number and
// type) and a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nunchi {

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct WireField {
  std::uint32_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t value = 0;  // if the type is varint, fixed64 or fixed32
  std::string_view bytes;   // if the type is bytes: a string or an inner message
};

// Reads a message field by field without copying or allocating. Lengths are checked against the end
// of the message.
class WireReader {
 public:
  // `message` must outlive the reader and the fields it hands out.
  explicit WireReader(std::string_view message) : message_(message) {}

  // The next field; nullopt at the end of the message. Throws Error, whose message names no file,
  // if the bytes are not a valid field. Groups, a deprecated type, are refused.
  std::optional<WireField> next();

 private:
  std::uint64_t varint();
  std::uint64_t fixed(std::size_t bytes);
  std::string_view take(std::uint64_t bytes);

  std::string_view message_;
  std::size_t offset_ = 0;
};

// Builds a message field by field.
class WireWriter {
 public:
  WireWriter& varint(std::uint32_t field, std::uint64_t value);
  WireWriter& fixed32(std::uint32_t field, std::uint32_t value);
  WireWriter& fixed64(std::uint32_t field, std::uint64_t value);
  WireWriter& bytes(std::uint32_t field, std::string_view value);  // a string or an inner message

  const std::string& message() const { return message_; }

 private:
  void tag(std::uint32_t field, WireType type);
  void append_varint(std::uint64_t value);

  std::string message_;
};

// Appends the lowest `bytes` bytes of a number, lowest first.
void append_little_endian(std::string& out, std::uint64_t value, int bytes);

}  // namespace nunchi
