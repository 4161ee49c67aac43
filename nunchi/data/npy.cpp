#include "nunchi/data/npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

static_assert(std::endian::native == std::endian::little, "the numbers are copied as they are");

constexpr std::string_view kMagic = "\x93NUMPY";

// The header: a Python dictionary such as
// {'descr': '<f4', 'fortran_order': False, 'shape': (12, 80), }
class Header {
 public:
  explicit Header(std::string_view text) : text_(text) {}

  // The text after "'key':", without the spaces before it; empty when there is no such key.
  std::string_view value(std::string_view key) const {
    const std::size_t found = text_.find("'" + std::string(key) + "':");
    if (found == text_.npos) return {};
    std::string_view rest = text_.substr(found + key.size() + 3);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    return rest;
  }

 private:
  std::string_view text_;
};

// Parses "(rows, columns)"; returns false for any other shape.
bool read_shape(std::string_view text, std::int64_t& rows, std::int64_t& columns) {
  const auto skip = [&](char expected) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (!text.starts_with(expected)) return false;
    text.remove_prefix(1);
    return true;
  };
  const auto number = [&](std::int64_t& value) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return error == std::errc();
  };
  return skip('(') && number(rows) && skip(',') && number(columns) && skip(')');
}

}  // namespace

Features parse_npy(const RandomAccessFile& file) {
  const auto check = [&](bool holds, const char* problem) {
    if (!holds) throw Error(file.name() + " is not a file of features: " + problem + ".");
  };
  constexpr std::size_t kPrefix = 12;  // the magic, the version and the header's length
  std::string prefix(std::min<std::uint64_t>(file.size(), kPrefix), '\0');
  file.read(0, std::as_writable_bytes(std::span(prefix)));
  check(prefix.starts_with(kMagic) && prefix.size() == kPrefix, "it is not in NumPy's .npy format");
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(prefix[i]));
  };
  const std::size_t version = byte(6);
  check(version >= 1 && version <= 3, "its format version is unknown");
  const std::size_t begin = version == 1 ? 10 : 12;
  const std::size_t length = version == 1
                                 ? byte(8) | byte(9) << 8
                                 : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  check(length <= file.size() - begin, "its header reaches past its end");
  std::string text(length, '\0');
  file.read(begin, std::as_writable_bytes(std::span(text)));
  const Header header(text);
  check(header.value("descr").starts_with("'<f4'"), "its numbers are not f32 ('<f4')");
  check(header.value("fortran_order").starts_with("False"), "it is in column-major order");
  std::int64_t rows = 0, columns = 0;
  check(read_shape(header.value("shape"), rows, columns), "it is not a matrix [rows, features]");
  check(rows > 0 && columns > 0, "it is empty");
  const std::uint64_t bytes = file.size() - begin - length;
  // Divides instead of multiplying, so that nothing can overflow.
  const auto count = static_cast<std::int64_t>(bytes / sizeof(float));
  check(bytes % sizeof(float) == 0 && count % rows == 0 && count / rows == columns,
        "its size does not match its shape");
  Features features{.width = columns,
                    .values = file.read_values<float>(begin + length, bytes / sizeof(float))};
  check(std::ranges::all_of(features.values, [](float value) { return std::isfinite(value); }),
        "it has a number that is not finite");
  return features;
}

Features read_npy(const std::filesystem::path& path) {
  const RandomAccessFile file(path);
  Features features = parse_npy(file);
  file.check_unchanged();
  return features;
}

}  // namespace nunchi
