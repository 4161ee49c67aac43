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
  std::uint64_t value = 0;  // of a varint, fixed64 or fixed32
  std::string_view bytes;   // of a string or an inner message
};

// Reads a message field by field. It copies and allocates nothing; lengths are checked against the
// message's end.
class WireReader {
 public:
  // `message` has to outlive the reader and the fields it hands out.
  explicit WireReader(std::string_view message) : message_(message) {}

  // The next field; none at the message's end. Throws Error, without a file's name, where the bytes
  // are no field. Groups, a type that is no longer written, are refused.
  std::optional<WireField> next();

 private:
  std::uint64_t varint();
  std::uint64_t fixed(std::size_t bytes);
  std::string_view take(std::uint64_t bytes);

  std::string_view message_;
  std::size_t at_ = 0;
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

// Appends the lowest `bytes` bytes of a number, the lowest first.
void append_little_endian(std::string& out, std::uint64_t value, int bytes);

}  // namespace nunchi
