#include "nunchi/models/format/safetensors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "nunchi/base/error.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/paths.h"

namespace nunchi {
namespace {

namespace fs = std::filesystem;
using testing::bytes;
using testing::content;
using testing::error_of;
using testing::says;
using testing::TemporaryFolder;

std::string length_field(std::uint64_t length) {
  std::string field(8, '\0');
  for (int i = 0; i < 8; ++i) field[i] = static_cast<char>(length >> (8 * i));
  return field;
}

// A file with this header, valid or not, and `data_bytes` bytes of data.
std::string file_of(std::string_view header, std::size_t data_bytes = 0) {
  std::string file = length_field(header.size()) + std::string(header);
  for (std::size_t i = 0; i < data_bytes; ++i) file.push_back(static_cast<char>(i + 1));
  return file;
}

std::string tensor(std::string_view name, std::string_view dtype, std::string_view shape,
                   std::string_view offsets) {
  return '"' + std::string(name) + R"(":{"dtype":")" + std::string(dtype) + R"(","shape":)" +
         std::string(shape) + R"(,"data_offsets":)" + std::string(offsets) + '}';
}

std::string object(std::initializer_list<std::string> members) {
  std::string result = "{";
  for (const std::string& member : members) {
    if (result.size() > 1) result += ',';
    result += member;
  }
  return result + '}';
}

std::string refusal_of(const std::string& file) {
  // A copy without spare capacity, so that sanitizers catch a read past its end.
  const std::vector<char> exact(file.begin(), file.end());
  return error_of(
      [&] { SafetensorsFile(RandomAccessFile(std::as_bytes(std::span(exact)), "m.safetensors")); });
}

::testing::AssertionResult refused(const std::string& file, std::string_view words) {
  const std::string message = refusal_of(file);
  if (!message.starts_with("m.safetensors: ") || message.find(words) == message.npos) {
    return ::testing::AssertionFailure() << "expected '... " << words << " ...', got: " << message;
  }
  return ::testing::AssertionSuccess();
}

// Like refused(), but compares the whole message after the file's name.
::testing::AssertionResult refused_exactly(const std::string& file, const std::string& sentence) {
  const std::string message = refusal_of(file);
  if (message == "m.safetensors: " + sentence) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << message;
}

// `contents` must outlive the result.
SafetensorsFile parse(const std::string& contents) {
  return SafetensorsFile(RandomAccessFile(bytes(contents), "m.safetensors"));
}

std::vector<std::string> names(const SafetensorsFile& file) {
  std::vector<std::string> result;
  for (const StoredTensor& tensor : file.tensors()) result.push_back(tensor.name);
  return result;
}

long peak_memory_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(Safetensors, ReadsNamesTypesShapesValuesAndMetadata) {
  std::string file = file_of(R"({"__metadata__":{"format":"pt","":"\u0000 \uac00"},)"
                             R"("w":{"shape":[1,2],"data_offsets":[0,8],"dtype":"I32"},)" +
                             tensor("step", "I64", "[]", "[8,16]") + "}  ");
  const std::int32_t w[] = {7, -1};
  const std::int64_t step = 1'000'000'000'000;
  file.append(reinterpret_cast<const char*>(w), sizeof w);
  file.append(reinterpret_cast<const char*>(&step), sizeof step);

  const SafetensorsFile read = parse(file);
  ASSERT_EQ(names(read), (std::vector<std::string>{"w", "step"}));
  EXPECT_EQ(read.tensors()[0].dtype, DType::i32);
  EXPECT_EQ(read.tensors()[0].shape, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(read.values<std::int32_t>(read.tensors()[0]), (std::vector<std::int32_t>{7, -1}));
  EXPECT_TRUE(read.tensors()[1].shape.empty());
  EXPECT_EQ(read.values<std::int64_t>(read.tensors()[1]), std::vector<std::int64_t>{step});
  EXPECT_EQ(read.find("step"), &read.tensors()[1]);
  EXPECT_EQ(read.find("none"), nullptr);
  EXPECT_EQ(read.metadata(), (std::map<std::string, std::string>{
                                 {"format", "pt"}, {"", std::string("\0 \xea\xb0\x80", 5)}}));
}

TEST(Safetensors, AFileWithoutTensorsIsValid) {
  EXPECT_TRUE(parse(file_of("{}")).tensors().empty());
}

TEST(Safetensors, TensorsMayBeInAnyOrderAndUnaligned) {
  const std::string file =
      file_of(object({tensor("last", "F32", "[1]", "[3,7]"), tensor("first", "I8", "[3]", "[0,3]"),
                      tensor("empty", "F64", "[2,0]", "[3,3]")}),
              7);
  const SafetensorsFile read = parse(file);
  EXPECT_EQ(names(read), (std::vector<std::string>{"last", "first", "empty"}));
  EXPECT_EQ(read.values<std::int8_t>(*read.find("first")), (std::vector<std::int8_t>{1, 2, 3}));
  EXPECT_EQ(read.values<std::int8_t>(*read.find("last")), (std::vector<std::int8_t>{4, 5, 6, 7}));
  EXPECT_EQ(read.find("empty")->bytes, 0u);
}

TEST(Safetensors, ARoundTripKeepsEveryBit) {
  const TemporaryFolder folder;
  const float f32[] = {1.5f, -0.0f, std::numeric_limits<float>::quiet_NaN()};
  const double f64[] = {1e300, -1e-300};
  const BFloat16 bf16[] = {BFloat16(1.0f), BFloat16(-3.0f)};
  const std::int8_t i8[] = {-128, 0, 127};
  const std::int32_t i32[] = {std::numeric_limits<std::int32_t>::min()};
  const std::int64_t i64[] = {std::numeric_limits<std::int64_t>::max()};
  const std::vector<SafetensorsEntry> entries = {
      {"z", DType::f32, {3, 1}, std::as_bytes(std::span(f32))},
      {"i8", DType::i8, {3}, std::as_bytes(std::span(i8))},
      {"f64", DType::f64, {2}, std::as_bytes(std::span(f64))},
      {"with \"quotes\", \n and 가", DType::bf16, {1, 2}, std::as_bytes(std::span(bf16))},
      {"scalar", DType::i32, {}, std::as_bytes(std::span(i32))},
      {"i64", DType::i64, {1, 1, 1, 1, 1, 1, 1, 1}, std::as_bytes(std::span(i64))},
      {"empty", DType::f32, {0, 5}, {}},
  };
  const std::map<std::string, std::string> metadata = {{"format", "pt"}, {"step", "눈치\t1"}};

  write_safetensors(folder / "a.safetensors", entries, metadata);
  const SafetensorsFile read = SafetensorsFile::open(folder / "a.safetensors");
  ASSERT_EQ(read.tensors().size(), entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const StoredTensor& tensor = read.tensors()[i];
    EXPECT_EQ(tensor.name, entries[i].name);
    EXPECT_EQ(tensor.dtype, entries[i].dtype);
    EXPECT_EQ(tensor.shape, entries[i].shape);
    EXPECT_TRUE(std::ranges::equal(read.values<std::byte>(tensor), entries[i].bytes))
        << tensor.name;
  }
  EXPECT_EQ(read.metadata(), metadata);

  write_safetensors(folder / "b.safetensors", entries, read.metadata());
  EXPECT_EQ(content(folder / "a.safetensors"), content(folder / "b.safetensors"));
}

TEST(Safetensors, AMovedFileKeepsItsBytes) {
  const TemporaryFolder folder;
  const std::int32_t value[] = {42};
  const SafetensorsEntry entry{"x", DType::i32, {1}, std::as_bytes(std::span(value))};
  write_safetensors(folder / "a.safetensors", {&entry, 1});
  SafetensorsFile first = SafetensorsFile::open(folder / "a.safetensors");
  const SafetensorsFile second = std::move(first);
  EXPECT_EQ(second.values<std::int32_t>(*second.find("x")), std::vector<std::int32_t>{42});
}

TEST(Safetensors, TheWriterAlignsTheDataTo64Bytes) {
  const TemporaryFolder folder;
  const std::int8_t value[] = {1};
  for (std::size_t length = 0; length < 130; ++length) {
    const SafetensorsEntry entry{
        std::string(length, 'n'), DType::i8, {1}, std::as_bytes(std::span(value))};
    write_safetensors(folder / "a.safetensors", {&entry, 1});
    EXPECT_EQ((fs::file_size(folder / "a.safetensors") - 1) % 64, 0u);
  }
}

TEST(Safetensors, TheWriterRefusesEntriesThatTheReaderWouldRefuse) {
  const TemporaryFolder folder;
  const float value[] = {1.0f, 2.0f};
  const auto good = std::as_bytes(std::span(value));
  const auto written = [&](std::vector<SafetensorsEntry> entries,
                           const std::map<std::string, std::string>& metadata = {}) {
    return error_of([&] { write_safetensors(folder / "a.safetensors", entries, metadata); });
  };
  EXPECT_TRUE(says(written({{"x", DType::f32, {3}, good}}), "needs 12 bytes"));
  EXPECT_TRUE(says(written({{"x", DType::f32, {-2}, good}}), "'-2' in its shape"));
  EXPECT_TRUE(says(written({{"x", DType::f32, {1, 1, 1, 1, 1, 1, 1, 1, 2}, good}}), "than 8 dim"));
  EXPECT_TRUE(says(written({{"x", DType::f32, {2}, good}, {"x", DType::f32, {2}, good}}), "twice"));
  EXPECT_TRUE(says(written({{"__metadata__", DType::f32, {2}, good}}), "metadata"));
  EXPECT_TRUE(says(written({{"__metadata__", DType::f32, {2}, good}}, {{"a", "b"}}), "twice"));
  EXPECT_TRUE(says(written({{"\xff", DType::f32, {2}, good}}), "not valid UTF-8"));
  EXPECT_TRUE(says(written({}, {{"a", "\xc3"}}), "not valid UTF-8"));
  EXPECT_TRUE(folder.empty());
}

TEST(Safetensors, AnErrorOfWritingHasTheFileAndTheReason) {
  try {
    write_safetensors("/no-such-folder/a.safetensors", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "cannot write /no-such-folder/a.safetensors: No such file or directory");
  }
}

TEST(Safetensors, AnErrorOfOpeningNamesTheFile) {
  const TemporaryFolder folder;
  EXPECT_THROW(SafetensorsFile::open(folder / "none.safetensors"), Error);
  std::ofstream(folder / "bad.safetensors") << "hello";
  try {
    SafetensorsFile::open(folder / "bad.safetensors");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), (folder / "bad.safetensors").string() +
                                ": 5 bytes are too few for a safetensors file");
  }
}

TEST(Safetensors, AFileTruncatedAnywhereIsRefused) {
  const std::string whole =
      file_of(R"({"__metadata__":{"a":"b"},)" + tensor("x", "F32", "[2,3]", "[0,24]") + "," +
                  tensor("y", "I8", "[5]", "[24,29]") + "} ",
              29);
  EXPECT_EQ(refusal_of(whole), "no error");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(refusal_of(whole.substr(0, length)), "no error") << length;
  }
}

TEST(Safetensors, AHeaderLongerThanTheFileIsRefusedWithoutAllocating) {
  const long before = peak_memory_kib();
  for (const std::uint64_t length :
       {std::uint64_t{9}, std::uint64_t{90'000'000}, std::uint64_t{1} << 40, std::uint64_t{1} << 63,
        std::numeric_limits<std::uint64_t>::max()}) {
    EXPECT_TRUE(refused(length_field(length) + "{}      ", "only 8 follow")) << length;
  }
  EXPECT_LT(peak_memory_kib() - before, 16 * 1024);
}

TEST(Safetensors, AHeaderOfMoreThan100MegabytesIsRefusedWithoutReadingIt) {
  constexpr std::uint64_t kLength = 100'000'001;
  const TemporaryFolder folder;
  std::ofstream(folder / "a.safetensors") << length_field(kLength);
  fs::resize_file(folder / "a.safetensors", 8 + kLength);
  const long before = peak_memory_kib();
  try {
    SafetensorsFile::open(folder / "a.safetensors");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("100000001 bytes is too long"), std::string::npos);
  }
  EXPECT_LT(peak_memory_kib() - before, 16 * 1024);
}

TEST(Safetensors, DeeplyNestedJsonIsRefusedWithLittleMemory) {
  const long before = peak_memory_kib();
  const std::string deep(2'000'000, '[');
  std::string objects;
  for (int i = 0; i < 200'000; ++i) objects += R"({"a":)";
  EXPECT_TRUE(refused(file_of(R"({"x":{"shape":)" + deep), "tensor 'x' has a list where"));
  EXPECT_TRUE(refused(file_of(R"({"x":)" + deep), "tensor 'x' has a list where"));
  EXPECT_TRUE(refused(file_of(R"({"x":{"shape":)" + objects), "'x' has an object where"));
  EXPECT_TRUE(refused(file_of(R"({"__metadata__":)" + objects), "metadata has an object"));
  EXPECT_TRUE(refused(file_of(objects), "tensor 'a' has the unknown field 'a'"));
  EXPECT_TRUE(refused(file_of(deep), "does not begin with '{'"));
  EXPECT_LT(peak_memory_kib() - before, 64 * 1024);
}

TEST(Safetensors, AHeaderThatIsNotAJsonObjectIsRefused) {
  EXPECT_TRUE(refused(file_of(""), "does not begin with '{'"));
  EXPECT_TRUE(refused(file_of("   {}"), "does not begin with '{'"));
  EXPECT_TRUE(refused(file_of("null"), "does not begin with '{'"));
  EXPECT_TRUE(refused(file_of("\xef\xbb\xbf{}"), "does not begin with '{'"));
  for (const char* broken : {"{", "{}}", "{} x", R"({"a)", R"({"a":})", "{'a':1}", "{/**/}",
                             R"({"x":{"shape":[1,]}})", R"({"x":{"dtype":"F32",}})"}) {
    EXPECT_TRUE(refused(file_of(broken), "not valid JSON in UTF-8; its byte")) << broken;
  }
}

TEST(Safetensors, AZeroByteInTheHeaderIsRefused) {
  EXPECT_TRUE(refused(file_of(std::string_view("{}\0{", 4)), "zero byte at 2"));
  EXPECT_TRUE(refused(file_of(std::string_view("{\0}", 3)), "zero byte at 1"));
}

TEST(Safetensors, InvalidUtf8IsRefused) {
  for (const char* name : {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                           R"(\ud800)", R"(\udc00\ud800)"}) {
    EXPECT_TRUE(refused(file_of(object({tensor(name, "I8", "[0]", "[0,0]")})), "UTF-8"));
    EXPECT_TRUE(
        refused(file_of(R"({"__metadata__":{"a":")" + std::string(name) + "\"}}"), "UTF-8"));
  }
}

TEST(Safetensors, DuplicatesAreRefused) {
  const std::string x = tensor("x", "I8", "[0]", "[0,0]");
  EXPECT_TRUE(refused_exactly(file_of(object({x, x})), "the name 'x' appears twice"));
  EXPECT_TRUE(refused(file_of(R"({"__metadata__":{},"__metadata__":{}})"), "twice"));
  EXPECT_TRUE(
      refused(file_of(R"({"__metadata__":{"k":"1","k":"2"}})"), "the metadata has 'k' twice"));
  EXPECT_TRUE(refused(file_of(R"({"x":{"dtype":"I8","dtype":"I8"}})"), "'x' has dtype twice"));
  EXPECT_TRUE(refused(file_of(R"({"x":{"shape":[],"shape":[1]}})"), "'x' has shape twice"));
  EXPECT_TRUE(refused(file_of(R"({"x":{"data_offsets":[0,0],"data_offsets":[0,0]}})"),
                      "'x' has data_offsets twice"));
}

// Many names in an order that looks random: each is found, and a name that appears twice is
// refused. A map of the names took five times as long as everything else.
TEST(Safetensors, ReadsManyTensorsInAnyOrder) {
  constexpr std::uint64_t kCount = 200'000, kStep = 123'457;  // no common factor
  const auto name_of = [](std::uint64_t i) {
    return "layer." + std::to_string(i * kStep % kCount);
  };
  std::string header = "{";
  for (std::uint64_t i = 0; i < kCount; ++i) {
    header += tensor(name_of(i), "I8", "[0]", "[0,0]") + ",";
  }
  const std::string last = tensor("last", "I8", "[0]", "[0,0]");
  const std::string file = file_of(header + last + "}");
  const SafetensorsFile read(RandomAccessFile(bytes(file), "file"));
  ASSERT_EQ(read.tensors().size(), kCount + 1);
  for (std::uint64_t i = 0; i < kCount; i += 9973) {
    ASSERT_EQ(read.find(name_of(i)), &read.tensors()[i]);
  }
  EXPECT_EQ(read.find("last"), &read.tensors().back());
  EXPECT_EQ(read.find("layer."), nullptr);
  EXPECT_EQ(read.find("zebra"), nullptr);
  EXPECT_TRUE(refused_exactly(file_of(header + tensor("layer.7", "I8", "[0]", "[0,0]") + "}"),
                              "the name 'layer.7' appears twice"));
}

TEST(Safetensors, MissingAndUnknownFieldsAreRefused) {
  EXPECT_TRUE(refused(file_of(R"({"x":{}})"), "tensor 'x' has no dtype"));
  EXPECT_TRUE(refused(file_of(R"({"x":{"dtype":"I8","data_offsets":[0,0]}})"), "has no shape"));
  EXPECT_TRUE(refused(file_of(R"({"x":{"dtype":"I8","shape":[0]}})"), "no pair of data_offsets"));
  EXPECT_TRUE(refused(file_of(object({tensor("x", "I8", "[0]", "[0]")})), "no pair of data_off"));
  EXPECT_TRUE(refused(file_of(object({tensor("x", "I8", "[0]", "[0,0,0]")})),
                      "more than two data_offsets"));
  EXPECT_TRUE(refused(file_of(R"({"x":{"stride":[1]}})"), "has the unknown field 'stride'"));
}

TEST(Safetensors, ValuesOfTheWrongKindAreRefused) {
  for (const char* value : {"null", "true", "1", "-1", "1.5", "1e999", "\"text\"", "[]"}) {
    const std::string v = value;
    EXPECT_TRUE(refused(file_of("{\"x\":" + v + "}"), "where the format does not allow it")) << v;
    EXPECT_TRUE(refused(file_of("{\"__metadata__\":" + v + "}"), "instead of text")) << v;
  }
  for (const char* value : {"null", "false", "7", "{}", "[\"F32\"]"}) {
    const std::string v = value;
    EXPECT_TRUE(
        refused(file_of("{\"x\":{\"dtype\":" + v + "}}"), "where the format does not allow it"))
        << v;
    EXPECT_TRUE(refused(file_of("{\"__metadata__\":{\"a\":" + v + "}}"), "instead of text")) << v;
  }
  for (const char* value : {"null", "7", "{}", "\"[1]\"", "[null]", "[true]", "[\"1\"]", "[[1]]"}) {
    const std::string v = value;
    EXPECT_TRUE(
        refused(file_of("{\"x\":{\"shape\":" + v + "}}"), "where the format does not allow it"))
        << v;
    EXPECT_TRUE(refused(file_of("{\"x\":{\"data_offsets\":" + v + "}}"),
                        "where the format does not allow it"))
        << v;
  }
}

TEST(Safetensors, UnsupportedTypesAreRefusedByName) {
  for (const std::string type : {"F16", "U16", "BOOL", "F8_E4M3", "U64", "f32", ""}) {
    EXPECT_TRUE(
        refused_exactly(file_of(object({tensor("x", type, "[0]", "[0,0]")})),
                        "tensor 'x' is of type '" + type +
                            "', which is not supported: F32, F64, BF16, I8, U8, I32 and I64 "
                            "are"));
  }
}

TEST(Safetensors, NumbersThatAreNotSizesAreRefused) {
  const std::string digits(400, '9');
  for (const std::string number : {"-1", "-0", "1.5", "1e3", "9223372036854775808",
                                   "18446744073709551616", "1e999", digits.c_str()}) {
    EXPECT_TRUE(refused(file_of(object({tensor("x", "I8", "[" + number + "]", "[0,0]")})),
                        "in its shape: not a whole number from 0 to"))
        << number;
    EXPECT_TRUE(refused(file_of(object({tensor("x", "I8", "[0]", "[0," + number + "]")})),
                        "in its data_offsets: not a whole number from 0 to"))
        << number;
  }
}

TEST(Safetensors, ShapesWhoseSizeOverflowsAreRefused) {
  const long before = peak_memory_kib();
  for (const char* shape :
       {"[1099511627776,1099511627776]", "[9223372036854775807]", "[4611686018427387904,4]",
        "[4294967296,4294967296,0]", "[0,4294967296,4294967296]"}) {
    EXPECT_TRUE(
        refused(file_of(object({tensor("x", "F32", shape, "[0,0]")})), "too large for any file"))
        << shape;
  }
  EXPECT_LT(peak_memory_kib() - before, 16 * 1024);
}

TEST(Safetensors, MoreThanEightDimensionsAreRefused) {
  EXPECT_EQ(refusal_of(file_of(object({tensor("x", "I8", "[1,1,1,1,1,1,1,1]", "[0,1]")}), 1)),
            "no error");
  EXPECT_TRUE(
      refused_exactly(file_of(object({tensor("x", "I8", "[1,1,1,1,1,1,1,1,1]", "[0,1]")}), 1),
                      "tensor 'x' has more than 8 dimensions"));
}

TEST(Safetensors, AByteCountThatDoesNotMatchTheShapeIsRefused) {
  EXPECT_TRUE(refused_exactly(
      file_of(object({tensor("encoder.x", "F32", "[2,3]", "[0,40]")}), 40),
      "tensor 'encoder.x' has bytes 0..40 but its shape [2, 3] of f32 needs 24 bytes"));
  EXPECT_TRUE(refused(file_of(object({tensor("x", "BF16", "[]", "[0,0]")})), "needs 2 bytes"));
  EXPECT_TRUE(refused(file_of(object({tensor("x", "I8", "[0]", "[0,1]")}), 1), "needs 0 bytes"));
}

TEST(Safetensors, OffsetsOutsideTheDataAreRefused) {
  EXPECT_TRUE(refused_exactly(file_of(object({tensor("x", "I8", "[5]", "[0,5]")}), 4),
                              "tensor 'x' has bytes 0..5 but the file has only 4 bytes of data: "
                              "was it cut short?"));
  EXPECT_TRUE(refused(file_of(object({tensor("x", "I8", "[0]", "[5,5]")}), 4), "only 4 bytes"));
  EXPECT_TRUE(refused(file_of(object({tensor("x", "I8", "[1]", "[3,2]")}), 4),
                      "has bytes 3..2, which end before they start"));
}

TEST(Safetensors, OverlapsAreRefused) {
  EXPECT_TRUE(refused_exactly(
      file_of(object({tensor("b", "I8", "[4]", "[2,6]"), tensor("a", "I8", "[4]", "[0,4]")}), 6),
      "tensors 'a' and 'b' overlap at byte 2 of the data"));
  EXPECT_TRUE(refused(
      file_of(object({tensor("a", "I8", "[4]", "[0,4]"), tensor("b", "I8", "[4]", "[0,4]")}), 4),
      "overlap"));
  EXPECT_TRUE(refused(
      file_of(object({tensor("a", "I8", "[4]", "[0,4]"), tensor("empty", "I8", "[0]", "[2,2]")}),
              4),
      "overlap"));
}

TEST(Safetensors, GapsAndTrailingBytesAreRefused) {
  EXPECT_TRUE(refused_exactly(
      file_of(object({tensor("a", "I8", "[2]", "[0,2]"), tensor("b", "I8", "[2]", "[4,6]")}), 6),
      "bytes 2..4 of the data, before tensor 'b', belong to no tensor"));
  EXPECT_TRUE(refused(file_of(object({tensor("a", "I8", "[2]", "[1,3]")}), 3), "bytes 0..1"));
  EXPECT_TRUE(
      refused_exactly(file_of(object({tensor("a", "I8", "[2]", "[0,2]")}), 5),
                      "bytes 2..5 of the data, after the last tensor, belong to no tensor"));
  EXPECT_TRUE(refused(file_of("{}", 1), "bytes 0..1 of the data, after the last tensor"));
}

TEST(Safetensors, ErrorsShortenAndEscapeHostileNames) {
  const std::string escapes = R"(\u001b[2J\r\n\u0000\u007f\u009b\u202e)";
  // NOLINTNEXTLINE(misc-misleading-bidirectional): such a name is the case tested
  const std::string hostile[] = {escapes, std::string(1'000'000, 'x'), "\xc2\x9b\xe2\x80\xae"};
  for (const std::string& text : hostile) {
    for (const std::string& file : {
             file_of(object({tensor(text, "I8", "[1]", "[0,0]")})),
             file_of(object({tensor("x", text, "[1]", "[0,0]")})),
             file_of("{\"x\":{\"" + text + "\":1}}"),
             file_of("{\"__metadata__\":{\"" + text + "\":\"\",\"" + text + "\":\"\"}}"),
             file_of("{\"" + text + "\":\xff"),
         }) {
      const std::string message = refusal_of(file);
      EXPECT_NE(message, "no error");
      EXPECT_LT(message.size(), 600u);
      for (const char c : message) EXPECT_TRUE(c >= ' ' && c < 0x7f) << message;
    }
  }
}

TEST(Safetensors, FuzzSeedsAreAcceptedOrRefusedAsTheirNamesSay) {
  const fs::path corpus = fs::path(NUNCHI_SOURCE_DIR) / "tests/fuzz/corpus/safetensors";
  int seeds = 0;
  for (const fs::directory_entry& seed : fs::directory_iterator(corpus)) {
    const bool valid = seed.path().filename().string().starts_with("valid-");
    const std::string message = refusal_of(content(seed.path()));
    EXPECT_EQ(message == "no error", valid) << seed.path() << ": " << message;
    ++seeds;
  }
  EXPECT_GE(seeds, 20);
}

}  // namespace
}  // namespace nunchi
