// The wire format of protocol buffers: a message is a row of fields, each a tag (number and type)
// and a value. Nothing is copied or allocated; lengths are held against the message's end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace nunchi {

enum class WireType { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct WireField {
  std::uint32_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t value = 0;  // of a varint, fixed64 or fixed32
  std::string_view bytes;   // of a string or an inner message
};

class WireReader {
 public:
  // `message` has to outlive the reader and the fields it hands out.
  explicit WireReader(std::string_view message) : message_(message) {}

  // The next field; nothing at the message's end. Throws Error, without a file's name, where the
  // bytes are no field. Groups, which nobody writes any more, count as broken.
  std::optional<WireField> next();

 private:
  std::uint64_t varint();
  std::uint64_t fixed(std::size_t bytes);
  std::string_view take(std::uint64_t bytes);

  std::string_view message_;
  std::size_t at_ = 0;
};

}  // namespace nunchi
