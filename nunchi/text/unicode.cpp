#include "nunchi/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace nunchi {
namespace {

using CodePoint = std::int32_t;

constexpr CodePoint kReplacement = 0xFFFD;
constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";

struct Decoded {
  CodePoint value;     // -1: the bytes are invalid
  std::size_t length;  // bytes of the character or of the maximal invalid part
};

unsigned char byte_at(std::string_view text, std::size_t position) {
  return static_cast<unsigned char>(text[position]);
}

// Decodes the character at `position` by table 3-7 of the Unicode standard: the range of the second
// byte excludes overlong forms, surrogates and code points past U+10FFFF.
Decoded decode_at(std::string_view text, std::size_t position) {
  const unsigned char lead = byte_at(text, position);
  if (lead < 0x80) return {lead, 1};
  unsigned char low = 0x80, high = 0xBF;
  std::size_t length = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {-1, 1};
  }
  CodePoint value = lead & (0x7F >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (position + i == text.size()) return {-1, i};
    const unsigned char next = byte_at(text, position + i);
    if (next < low || next > high) return {-1, i};
    low = 0x80, high = 0xBF;
    value = (value << 6) | (next & 0x3F);
  }
  return {value, length};
}

// The position of the first invalid byte; text.size() if there is none.
std::size_t first_invalid(std::string_view text) {
  std::size_t position = 0;
  while (position < text.size()) {
    const Decoded next = decode_at(text, position);
    if (next.value < 0) return position;
    position += next.length;
  }
  return position;
}

CodePoint take(std::string_view& text) {
  const Decoded next = decode_at(text, 0);
  text.remove_prefix(next.length);
  return next.value < 0 ? kReplacement : next.value;
}

void append(std::string& text, CodePoint value) {
  std::array<utf8proc_uint8_t, 4> bytes;
  const auto length = utf8proc_encode_char(value, bytes.data());
  text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(length));
}

bool is_between(CodePoint value, CodePoint first, CodePoint last) {
  return value >= first && value <= last;
}

// Characters that NFC does not change next to one another: everything before the combining marks,
// the common Han characters, Hangul syllables. Most lines contain no others.
bool is_plainly_composed(CodePoint value) {
  return value < 0x300 || is_between(value, 0x4E00, 0x9FFF) || is_between(value, 0xAC00, 0xD7A3);
}

int combining_class(CodePoint value) { return utf8proc_get_property(value)->combining_class; }

void append_decomposed(std::vector<CodePoint>& to, CodePoint value) {
  std::array<utf8proc_int32_t, 32> parts;  // the longest canonical decomposition has 4
  const auto count =
      utf8proc_decompose_char(value, parts.data(), parts.size(), UTF8PROC_DECOMPOSE, nullptr);
  if (count < 0 || count > static_cast<utf8proc_ssize_t>(parts.size())) {
    throw std::logic_error("a character has no decomposition");
  }
  to.insert(to.end(), parts.begin(), parts.begin() + count);
}

// Sorts the marks on one character by their classes. utf8proc's own ordering swaps neighbours,
// which takes a day for a line of a million marks.
void order_marks(std::vector<CodePoint>& text) {
  const auto is_mark = [](CodePoint value) { return combining_class(value) != 0; };
  for (auto begin = text.begin(); begin != text.end();) {
    begin = std::find_if(begin, text.end(), is_mark);
    const auto end = std::find_if_not(begin, text.end(), is_mark);
    std::stable_sort(begin, end, [](CodePoint a, CodePoint b) {
      return combining_class(a) < combining_class(b);
    });
    begin = end;
  }
}

// Composes decomposed and ordered characters.
std::string composed(std::vector<CodePoint> text) {
  // utf8proc treats U+11A7, the code point before the final jamo, as an empty final and drops it.
  // It composes with no neighbour, so the text is cut before each one and composed part by part.
  constexpr CodePoint kBeforeFinals = 0x11A7;
  std::string result;
  result.reserve(text.size());
  for (auto begin = text.begin(); begin != text.end();) {
    const auto end = std::find(begin + 1, text.end(), kBeforeFinals);
    const auto count = utf8proc_normalize_utf32(
        &*begin, end - begin, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    if (count < 0) throw std::logic_error(utf8proc_errmsg(count));
    std::for_each(begin, begin + count, [&](CodePoint value) { append(result, value); });
    begin = end;
  }
  return result;
}

// How a character affects the lower case of a capital sigma near it.
enum class Casing { ignorable, cased, uncased };

// Word_Break = MidLetter, MidNumLet or Single_Quote, all of them punctuation.
bool is_mid_word_punctuation(CodePoint value) {
  switch (value) {
    case 0x27:
    case 0x2E:
    case 0x3A:
    case 0xB7:
    case 0x387:
    case 0x55F:
    case 0x5F4:
    case 0x2018:
    case 0x2019:
    case 0x2024:
    case 0x2027:
    case 0xFE13:
    case 0xFE52:
    case 0xFE55:
    case 0xFF07:
    case 0xFF0E:
    case 0xFF1A:
      return true;
    default:
      return false;
  }
}

// The characters of Other_Lowercase and Other_Uppercase that are neither cased letters nor
// ignorable: ordinal indicators, Roman numerals, enclosed letters.
bool has_case_without_being_a_cased_letter(CodePoint value) {
  return value == 0xAA || value == 0xBA || is_between(value, 0x2160, 0x217F) ||
         is_between(value, 0x24B6, 0x24E9) || is_between(value, 0x1F130, 0x1F149) ||
         is_between(value, 0x1F150, 0x1F169) || is_between(value, 0x1F170, 0x1F189);
}

Casing casing_of(CodePoint value) {
  switch (utf8proc_category(value)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return Casing::ignorable;
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
      return Casing::cased;
    default:
      if (is_mid_word_punctuation(value)) return Casing::ignorable;
      return has_case_without_being_a_cased_letter(value) ? Casing::cased : Casing::uncased;
  }
}

// Whether a cased letter follows after ignorable characters. A sigma is not ignorable and ends the
// search, so the time for a text with many sigmas stays linear.
bool cased_letter_follows(std::string_view text) {
  while (!text.empty()) {
    const Casing casing = casing_of(take(text));
    if (casing != Casing::ignorable) return casing == Casing::cased;
  }
  return false;
}

constexpr CodePoint kCapitalSigma = 0x3A3, kSigma = 0x3C3, kFinalSigma = 0x3C2;
constexpr CodePoint kCapitalDottedI = 0x130;

int width_of(CodePoint value) {
  // Medial and final jamo are displayed in the columns of the initial before them.
  if (is_between(value, 0x1160, 0x11FF) || is_between(value, 0xD7B0, 0xD7FF)) return 0;
  return utf8proc_charwidth(value);
}

}  // namespace

bool is_valid_utf8(std::string_view text) { return first_invalid(text) == text.size(); }

char32_t take_character(std::string_view& text) { return static_cast<char32_t>(take(text)); }

std::string repaired_utf8(std::string_view text) {
  std::size_t position = first_invalid(text);
  std::string repaired(text.substr(0, position));
  while (position < text.size()) {
    const Decoded next = decode_at(text, position);
    repaired += next.value < 0 ? kReplacementUtf8 : text.substr(position, next.length);
    position += next.length;
  }
  return repaired;
}

std::string nfc(std::string_view text) {
  std::string_view rest = text;
  bool plain = true;
  while (plain && !rest.empty()) plain = is_plainly_composed(take(rest));
  if (plain) return std::string(text);

  std::vector<CodePoint> characters;
  characters.reserve(text.size());
  for (rest = text; !rest.empty();) append_decomposed(characters, take(rest));
  order_marks(characters);
  return composed(std::move(characters));
}

std::string lowercased(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  bool after_cased = false;  // the last character that is not ignorable is cased
  while (!text.empty()) {
    const CodePoint value = take(text);
    if (value < 0x80) {
      result.push_back(static_cast<char>(value >= 'A' && value <= 'Z' ? value + 32 : value));
    } else if (value == kCapitalSigma) {
      append(result, after_cased && !cased_letter_follows(text) ? kFinalSigma : kSigma);
    } else if (value == kCapitalDottedI) {
      result += "i\xCC\x87";
    } else {
      append(result, utf8proc_tolower(value));
    }
    const Casing casing = casing_of(value);
    if (casing != Casing::ignorable) after_cased = casing == Casing::cased;
  }
  return result;
}

bool is_word_character(char32_t character) {
  const auto value = static_cast<CodePoint>(character);
  constexpr std::array<std::pair<CodePoint, CodePoint>, 9> kWithoutSpaces = {
      {{0x0E00, 0x0EFF},      // Thai, Lao
       {0x1000, 0x109F},      // Burmese
       {0x1780, 0x17FF},      // Khmer
       {0x3005, 0x3007},      // iteration marks
       {0x3040, 0x30FF},      // Hiragana, Katakana
       {0x31F0, 0x31FF},      // small Katakana
       {0x3400, 0x9FFF},      // Han
       {0xF900, 0xFAFF},      // Han, compatibility
       {0x20000, 0x3FFFF}}};  // Han, supplementary planes
  for (const auto& [first, last] : kWithoutSpaces) {
    if (is_between(value, first, last)) return false;
  }
  switch (utf8proc_category(value)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return true;
    default:
      return false;
  }
}

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) width += width_of(take(text));
  return width;
}

}  // namespace nunchi
