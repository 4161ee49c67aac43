// Compares with Python on the same texts: tests/golden/make_unicode.py.
#include "nunchi/text/unicode.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/files.h"
#include "tests/paths.h"

namespace nunchi {
namespace {

const nlohmann::json& golden() {
  static const auto json = nlohmann::json::parse(
      testing::content(std::filesystem::path(NUNCHI_SOURCE_DIR) / "tests/golden/unicode.json"));
  return json;
}

std::string utf8(std::uint32_t c) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((c >> shift) & 0x3F)); };
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xC0 | (c >> 6)), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xE0 | (c >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | (c >> 18)), tail(12), tail(6), tail(0)};
}

// FNV-1a over the results of `convert` for all assigned characters.
std::string digest(const std::function<std::string(const std::string&)>& convert) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const auto& range : golden().at("assigned")) {
    for (std::uint32_t c = range[0]; c <= range[1].get<std::uint32_t>(); ++c) {
      for (const char byte : convert(utf8(c)) + '\n') {
        hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3;
      }
    }
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::string repeated(std::string_view part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

TEST(Unicode, InvalidBytesAreReplacedAsInPython) {
  for (const auto& example : golden().at("repaired")) {
    const std::string bytes = from_hex(example.at("bytes"));
    const std::string expected = example.at("text");
    EXPECT_EQ(repaired_utf8(bytes), expected) << example.at("bytes");
    EXPECT_EQ(is_valid_utf8(bytes), bytes == expected) << example.at("bytes");
    EXPECT_TRUE(is_valid_utf8(repaired_utf8(bytes)));
  }
}

TEST(Unicode, EveryCharacterIsLowercasedAsInPython) {
  const auto& expected = golden().at("lowercased");
  EXPECT_EQ(digest([](auto& c) { return lowercased(c); }), expected.at("alone").get<std::string>());
  EXPECT_EQ(digest([](auto& c) { return lowercased(c + "Σ"); }),
            expected.at("before_sigma").get<std::string>());
  EXPECT_EQ(digest([](auto& c) { return lowercased("A" + c + "Σ"); }),
            expected.at("between").get<std::string>());
  EXPECT_EQ(digest([](auto& c) { return lowercased("AΣ" + c + "a"); }),
            expected.at("after_sigma").get<std::string>());
}

TEST(Unicode, EveryCharacterIsComposedAsInPython) {
  const auto& expected = golden().at("nfc");
  EXPECT_EQ(digest([](auto& c) { return nfc(c); }), expected.at("alone").get<std::string>());
  EXPECT_EQ(digest([](auto& c) { return nfc(c + "\u0301\u0327\u05b0"); }),
            expected.at("marked").get<std::string>());
}

TEST(Unicode, TextsAreLowercasedAndComposedAsInPython) {
  for (const auto& example : golden().at("texts")) {
    const std::string text = example.at("text");
    EXPECT_EQ(lowercased(text), example.at("lowercased").get<std::string>()) << text;
    EXPECT_EQ(nfc(text), example.at("nfc").get<std::string>()) << text;
    EXPECT_EQ(nfc(nfc(text)), nfc(text)) << text;
  }
}

TEST(Unicode, SigmaAndDottedI) {
  EXPECT_EQ(lowercased("ΟΔΥΣΣΕΎΣ"), "οδυσσεύς");
  EXPECT_EQ(lowercased("Σ ΑΣ. Α.ΣΑ"), "σ ας. α.σα");
  EXPECT_EQ(lowercased("İstanbul"), "i\u0307stanbul");
}

TEST(Unicode, DecomposedHangulBecomesSyllables) {
  EXPECT_EQ(nfc("\u1102\u116e\u11ab\u110e\u1175"), "눈치");
  EXPECT_EQ(nfc("\uac00\u11a7"), "\uac00\u11a7") << "not a final consonant, so it is unchanged";
}

TEST(Unicode, ATextMayContainZeroBytes) {
  const std::string text("a\0\xCC\x81Σ", 6);
  EXPECT_EQ(nfc(text), text);
  EXPECT_EQ(lowercased(text), std::string("a\0\xCC\x81σ", 6));
  EXPECT_TRUE(is_valid_utf8(text));
}

// A quadratic step would take minutes.
TEST(Unicode, TimeIsLinearInTheLengthOfALine) {
  const std::string marks = "e" + repeated("\u0301\u0327", 500'000);
  EXPECT_EQ(nfc(marks).size(), 1u + 2'000'000u - 1u)
      << "e and one cedilla compose to ȩ, the rest is unchanged";
  const std::string sigmas = "A" + repeated("Σ.", 500'000);
  EXPECT_EQ(lowercased(sigmas).size(), sigmas.size());
  EXPECT_EQ(repaired_utf8(std::string(1'000'000, '\xFF')).size(), 3'000'000u);
}

TEST(Unicode, DisplayWidthIsTheNumberOfTerminalColumns) {
  EXPECT_EQ(display_width(""), 0);
  EXPECT_EQ(display_width("nunchi"), 6);
  EXPECT_EQ(display_width("눈치"), 4);
  EXPECT_EQ(display_width("\u1102\u116e\u11ab\u110e\u1175"), 4) << "decomposed";
  EXPECT_EQ(display_width("e\u0301"), 1);
  EXPECT_EQ(display_width("漢ア１"), 6);
  EXPECT_EQ(display_width("a\u200b\n\x1b"), 1);
  EXPECT_EQ(display_width("▁é"), 2);
}

}  // namespace
}  // namespace nunchi
