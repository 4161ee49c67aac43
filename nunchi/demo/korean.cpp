#include "nunchi/demo/korean.h"

#include <array>
#include <cstdint>

#include "nunchi/base/error.h"

namespace nunchi::demo {
namespace {

constexpr std::uint32_t kFirstSyllable = 0xAC00;  // 가
constexpr std::uint32_t kLastSyllable = 0xD7A3;   // 힣
constexpr std::uint32_t kFinals = 28;             // no final consonant, or one of 27
constexpr std::uint32_t kRieul = 8;               // the index of ㄹ among them

// The code point of the last character if it has three bytes in UTF-8, like every Hangul syllable;
// 0 otherwise.
std::uint32_t last_three_byte_character(std::string_view text) {
  if (text.size() < 3) return 0;
  const auto byte = [&](std::size_t from_end) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[text.size() - from_end]));
  };
  if ((byte(3) & 0xF0u) != 0xE0u) return 0;
  return (byte(3) & 0x0Fu) << 12 | (byte(2) & 0x3Fu) << 6 | (byte(1) & 0x3Fu);
}

// For 1 to 9,999. A one before 천, 백 and 십 is left out: 천백, not 일천일백.
std::string below_ten_thousand(int number) {
  static constexpr std::array<std::string_view, 10> kDigits{"",   "일", "이", "삼", "사",
                                                            "오", "육", "칠", "팔", "구"};
  struct Unit {
    int size;
    std::string_view name;
  };
  static constexpr std::array<Unit, 3> kUnits{{{1000, "천"}, {100, "백"}, {10, "십"}}};
  std::string text;
  for (const Unit& unit : kUnits) {
    const int digit = number / unit.size % 10;
    if (digit > 1) text += kDigits[digit];
    if (digit > 0) text += unit.name;
  }
  return text += kDigits[number % 10];
}

void check_range(std::string_view what, int number, int last) {
  if (number >= 1 && number <= last) return;
  throw Error(std::string(what) + " " + std::to_string(number) + " is not between 1 and " +
              std::to_string(last) + ".");
}

}  // namespace

FinalConsonant final_consonant(std::string_view text) {
  const std::uint32_t last = last_three_byte_character(text);
  if (last < kFirstSyllable || last > kLastSyllable) {
    throw Error("'" + std::string(text) +
                "' does not end in a Hangul syllable, so no particle can be chosen for it.");
  }
  const std::uint32_t final = (last - kFirstSyllable) % kFinals;
  if (final == 0) return FinalConsonant::none;
  return final == kRieul ? FinalConsonant::rieul : FinalConsonant::other;
}

std::string_view particle(std::string_view text, std::string_view forms) {
  const std::size_t slash = forms.find('/');
  if (slash == forms.npos) {
    throw Error("'" + std::string(forms) + "' is not a pair of particle forms like 을/를.");
  }
  const FinalConsonant final = final_consonant(text);
  const bool rieul_as_vowel = forms.starts_with("으로");
  const bool as_vowel =
      final == FinalConsonant::none || (final == FinalConsonant::rieul && rieul_as_vowel);
  return as_vowel ? forms.substr(slash + 1) : forms.substr(0, slash);
}

std::string_view native_number(int number) {
  static constexpr std::array<std::string_view, 12> kNumbers{
      "한", "두", "세", "네", "다섯", "여섯", "일곱", "여덟", "아홉", "열", "열한", "열두"};
  check_range("native_number:", number, static_cast<int>(kNumbers.size()));
  return kNumbers[number - 1];
}

std::string native_ordinal(int number) {
  return std::string(number == 1 ? "첫" : native_number(number)) + " 번째";
}

std::string sino_number(int number) {
  check_range("sino_number:", number, 99'999'999);
  const int ten_thousands = number / 10'000, rest = number % 10'000;
  if (ten_thousands == 0) return below_ten_thousand(rest);
  std::string text = ten_thousands == 1 ? "만" : below_ten_thousand(ten_thousands) + "만";
  return rest == 0 ? text : text + " " + below_ten_thousand(rest);
}

}  // namespace nunchi::demo
