#include "nunchi/views/html_page.h"

#include <fmt/format.h>

#include <iterator>

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

constexpr std::string_view kPayload = "<script type=\"application/json\" id=\"payload\">";

// The code of the character at `position` if it must be escaped, otherwise 0. Characters above
// U+007F are U+200E and U+200F, U+2028 to U+202E and U+2066 to U+2069: three bytes, the first 0xE2.
unsigned escaped_code(std::string_view json, std::size_t position) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(json[position + i]); };
  if (byte(0) == '<' || byte(0) == '>' || byte(0) == '&') return byte(0);
  if (byte(0) != 0xE2 || json.size() - position < 3) return 0;
  if ((byte(1) & 0xC0u) != 0x80 || (byte(2) & 0xC0u) != 0x80) return 0;
  const unsigned code = 0x2000u | ((byte(1) & 0x3Fu) << 6) | (byte(2) & 0x3Fu);
  const bool is_separator_or_direction = code == 0x200E || code == 0x200F ||
                                         (code >= 0x2028 && code <= 0x202E) ||
                                         (code >= 0x2066 && code <= 0x2069);
  return is_separator_or_direction ? code : 0;
}

}  // namespace

std::string html_page(std::string_view payload_json) {
  const std::string_view page = empty_page();
  const std::size_t found = page.find(kPayload);
  if (found == std::string_view::npos) throw Error("html_page: the page has no payload element.");
  const std::size_t begin = found + kPayload.size();
  std::string result;
  result.reserve(page.size() + payload_json.size() + payload_json.size() / 16);
  result += page.substr(0, begin);
  for (std::size_t i = 0; i < payload_json.size();) {
    const unsigned code = escaped_code(payload_json, i);
    if (code == 0) {
      result += payload_json[i++];
    } else {
      fmt::format_to(std::back_inserter(result), "\\u{:04x}", code);
      i += code < 0x80 ? 1 : 3;
    }
  }
  result += page.substr(begin);
  return result;
}

}  // namespace nunchi
