// The English grammar of the demo's sentences.
#pragma once

#include <string>
#include <string_view>

namespace nunchi::demo {

// The word for 0 to 12: three.
std::string_view number_word(int number);

// The word for 1 to 12: third.
std::string_view ordinal_word(int number);

// 1st, 2nd, 3rd, 4th, 11th, 21st.
std::string ordinal(int number);

// Digits in groups of three: 12,500.
std::string with_commas(int number);

// "a" or "an" by the first letter of the next word; wrong for "hour" and "university".
std::string_view article(std::string_view following);

// For month 1 to 12.
std::string_view month_name(unsigned month);

}  // namespace nunchi::demo
