// The Korean grammar of the demo's sentences.
#pragma once

#include <string>
#include <string_view>

namespace nunchi::demo {

// The final consonant of a syllable decides which form of a particle follows it.
enum class FinalConsonant { none, rieul, other };

// The final consonant of the text's last character. Throws Error unless it is a Hangul syllable: a
// particle after a digit or a Latin letter depends on its pronunciation.
FinalConsonant final_consonant(std::string_view text);

// The form of a particle that follows `text`. `forms` has the form after a consonant and the form
// after a vowel: "을/를", "은/는", "이/가", "과/와", "으로/로". 로 also follows ㄹ: 서울로, but
// 부산으로.
std::string_view particle(std::string_view text, std::string_view forms);

// Native Korean numbers from 1 to 12 before a counter: 한, 두, 세, 네, 다섯, …, 열두.
std::string_view native_number(int number);

// Native Korean ordinals: 세 번째; the first is 첫 번째.
std::string native_ordinal(int number);

// Sino-Korean numbers from 1 to 99,999,999, with a space after the ten thousands: 만 이천오백.
std::string sino_number(int number);

}  // namespace nunchi::demo
