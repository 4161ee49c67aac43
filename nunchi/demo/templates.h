// The sentences of the demo: pairs of patterns, Korean and English, that share their slots.
//
//   {city}     a value of that kind (slots.h); {city2} is a second one that differs from the first
//   [을/를]    Korean: the particle form that follows the text before it
//   [a/an]     English: the article for the word after it
//
// The first letter of an English sentence is capitalised automatically. To add a sentence, add a
// line to templates.cpp; a test checks it and counts its sentences.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nunchi/demo/slots.h"

namespace nunchi::demo {

struct Template {
  std::string_view korean, english;
};

std::span<const Template> templates();

// A parsed template, which renders pairs of sentences.
class ParsedTemplate {
 public:
  // The maximum number of slots: with 16 bits for each value, a combination fits in 64 bits.
  static constexpr int kMaxSlots = 4;

  // Throws Error, with the pattern, when the two sides do not have the same slots, a slot or a
  // bracket is malformed, or there are too many slots.
  explicit ParsedTemplate(const Template& patterns);

  // The kinds of the slots in the order of the Korean side, as indices in slot_kinds().
  std::span<const int> kinds() const { return kinds_; }

  // The number of different sentences.
  std::uint64_t sentence_count() const;

  // The pair of sentences with these values, one for each slot.
  Rendering render(std::span<const int> values) const;

 private:
  struct Piece {
    enum class Type { text, slot, choice } type;
    std::string text;  // a choice: both forms; a slot: its name
    int slot = 0;      // the index of the slot
  };

  std::vector<Piece> parse(std::string_view pattern, std::vector<std::string>& names) const;

  std::vector<int> kinds_;
  std::vector<Piece> korean_, english_;
};

// The values of the slots as one number: their slot_number()s in ascending order, 16 bits each. It
// does not depend on the template.
std::uint64_t combination_key(std::span<const int> kinds, std::span<const int> values);

}  // namespace nunchi::demo
