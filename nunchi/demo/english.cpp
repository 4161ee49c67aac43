#include "nunchi/demo/english.h"

#include <array>

namespace nunchi::demo {

std::string_view number_word(int number) {
  static constexpr std::array<std::string_view, 13> kWords{
      "zero",  "one",   "two",  "three", "four",   "five",  "six",
      "seven", "eight", "nine", "ten",   "eleven", "twelve"};
  return kWords.at(number);
}

std::string_view ordinal_word(int number) {
  static constexpr std::array<std::string_view, 12> kWords{
      "first",   "second", "third", "fourth", "fifth",    "sixth",
      "seventh", "eighth", "ninth", "tenth",  "eleventh", "twelfth"};
  return kWords.at(number - 1);
}

std::string ordinal(int number) {
  const int tens = number / 10 % 10, ones = number % 10;
  std::string_view ending = "th";
  if (tens != 1 && ones == 1) ending = "st";
  if (tens != 1 && ones == 2) ending = "nd";
  if (tens != 1 && ones == 3) ending = "rd";
  return std::to_string(number) + std::string(ending);
}

std::string with_commas(int number) {
  std::string digits = std::to_string(number);
  for (int i = static_cast<int>(digits.size()) - 3; i > 0; i -= 3) digits.insert(i, ",");
  return digits;
}

std::string_view article(std::string_view following) {
  constexpr std::string_view kVowels = "aeiouAEIOU";
  return !following.empty() && kVowels.find(following.front()) != kVowels.npos ? "an" : "a";
}

std::string_view month_name(unsigned month) {
  static constexpr std::array<std::string_view, 12> kMonths{
      "January", "February", "March",     "April",   "May",      "June",
      "July",    "August",   "September", "October", "November", "December"};
  return kMonths.at(month - 1);
}

}  // namespace nunchi::demo
