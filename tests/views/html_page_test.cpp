#include "nunchi/views/html_page.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace nunchi {
namespace {

constexpr std::string_view kOpen = "<script type=\"application/json\" id=\"payload\">";

// The text of the payload element, as a browser reads it: up to the first end tag.
std::string payload_of(const std::string& page) {
  const std::size_t begin = page.find(kOpen) + kOpen.size();
  return page.substr(begin, page.find("</script", begin) - begin);
}

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(HtmlPage, HasOneEmptyPayloadAndNothingToReplace) {
  const std::string_view page = empty_page();
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
  EXPECT_EQ(count_of(page, kOpen), 1u);
  EXPECT_EQ(payload_of(std::string(page)), "");
  for (const char* placeholder : {"@script@", "@style@", "@script_hash@", "@style_hash@"}) {
    EXPECT_EQ(page.find(placeholder), page.npos) << placeholder;
  }
}

TEST(HtmlPage, AllowsOnlyItsOwnScriptAndStyle) {
  const std::string_view page = empty_page();
  const std::size_t policy = page.find("Content-Security-Policy");
  ASSERT_NE(policy, page.npos);
  const std::string_view rest = page.substr(policy, page.find('\n', policy) - policy);
  EXPECT_NE(rest.find("default-src 'none'; script-src 'sha256-"), rest.npos) << rest;
  EXPECT_EQ(rest.find("unsafe"), rest.npos) << rest;
  EXPECT_EQ(rest.find("connect-src"), rest.npos) << rest;
  for (const char* address : {"src=\"http", "href=\"http", "url(", "@import", "import("}) {
    EXPECT_EQ(page.find(address), page.npos) << address;
  }
}

// Separators of lines and characters that change the direction of text, by their codes: a compiler
// may warn about them in a literal.
std::string utf8(unsigned code) {
  return {static_cast<char>(0xE0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
          static_cast<char>(0x80 | (code & 0x3F))};
}
constexpr std::array<unsigned, 13> kSpecial{0x200E, 0x200F, 0x2028, 0x2029, 0x202A, 0x202B, 0x202C,
                                            0x202D, 0x202E, 0x2066, 0x2067, 0x2068, 0x2069};

TEST(HtmlPage, AHostilePayloadStaysInItsElement) {
  std::string text = "</script><script>alert(1)</script><!-- <ScRiPt> & &lt; 고양이 ";
  text += "👩‍👩‍👧 \\u003c \" \\ \n";
  text += utf8(0x1100) + utf8(0x1161);  // a syllable as two letters (NFD)
  for (const unsigned code : kSpecial) text += utf8(code);
  const std::string json = nlohmann::json{{"inspections", {{{"text", text}}}}}.dump();
  const std::string page = html_page(json);
  const std::string payload = payload_of(page);
  EXPECT_EQ(payload.find_first_of("<>&"), payload.npos);
  for (const unsigned code : kSpecial) {
    EXPECT_EQ(payload.find(utf8(code)), payload.npos) << code;
  }
  EXPECT_EQ(nlohmann::json::parse(payload), nlohmann::json::parse(json));
  EXPECT_EQ(count_of(page, "</script>"), count_of(empty_page(), "</script>"));
  EXPECT_EQ(page.size() - payload.size(), empty_page().size());
}

TEST(HtmlPage, KeepsOtherCharacters) {
  const std::string json = R"({"a":"고양이 … “” ▁ € \u003c","b":[1,-2.5e-3,null]})";
  EXPECT_EQ(payload_of(html_page(json)), json);
}

// A cut character at the end of the text is copied as it is.
TEST(HtmlPage, ReadsNothingPastTheEnd) {
  EXPECT_EQ(payload_of(html_page("\"\xe2\x80")), "\"\xe2\x80");
  EXPECT_EQ(payload_of(html_page("\xe2\x40\x0e")), "\xe2\x40\x0e");  // no UTF-8
  EXPECT_EQ(payload_of(html_page("")), "");
}

}  // namespace
}  // namespace nunchi
