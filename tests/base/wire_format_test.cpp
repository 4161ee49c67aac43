#include "nunchi/base/wire_format.h"

#include <gtest/gtest.h>

#include "tests/errors.h"

namespace nunchi::testing {
namespace {

TEST(WireFormat, ReadsWhatItWrites) {
  WireWriter writer;
  const std::uint64_t values[] = {0, 1, 127, 128, 300, std::uint64_t{1} << 63, ~std::uint64_t{0}};
  for (const std::uint64_t value : values) writer.varint(1, value);
  writer.fixed32(2, 0x01020304).fixed64(16, 0x0102030405060708).bytes(300, "text").bytes(4, "");
  WireReader reader(writer.message());
  for (const std::uint64_t value : values) {
    const auto field = reader.next();
    ASSERT_TRUE(field && field->number == 1 && field->type == WireType::varint);
    EXPECT_EQ(field->value, value);
  }
  auto field = reader.next();
  EXPECT_TRUE(field && field->number == 2 && field->type == WireType::fixed32);
  EXPECT_EQ(field->value, 0x01020304u);
  field = reader.next();
  EXPECT_TRUE(field && field->number == 16 && field->type == WireType::fixed64);
  EXPECT_EQ(field->value, 0x0102030405060708u);
  field = reader.next();
  EXPECT_TRUE(field && field->number == 300 && field->bytes == "text");
  field = reader.next();
  EXPECT_TRUE(field && field->number == 4 && field->bytes.empty());
  EXPECT_FALSE(reader.next());
}

// The examples of the protocol buffers encoding guide.
TEST(WireFormat, WritesTheStandardBytes) {
  EXPECT_EQ(WireWriter().varint(1, 150).message(), "\x08\x96\x01");
  EXPECT_EQ(WireWriter().bytes(2, "testing").message(), "\x12\x07testing");
  EXPECT_EQ(WireWriter().fixed32(1, 0x64636261).message(),
            "\x0d"
            "abcd");
}

TEST(WireFormat, RefusesBrokenMessages) {
  const auto refusal = [](std::string_view message) {
    return error_of([&] {
      for (WireReader reader(message); reader.next();) {
      }
    });
  };
  EXPECT_TRUE(says(refusal("\x12\x07test"), "past the end"));
  EXPECT_TRUE(says(refusal("\x08"), "past the end"));
  EXPECT_TRUE(says(refusal("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), "64 bits"));
  EXPECT_TRUE(says(refusal(std::string_view("\x00\x01", 2)), "invalid number"));
  EXPECT_TRUE(says(refusal("\x0b"), "invalid type"));
}

}  // namespace
}  // namespace nunchi::testing
