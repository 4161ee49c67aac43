// The sentences of the demo: pairs of patterns, Korean and English, that share their slots.
//
//   {city}     a value of that kind (slots.h); {city2} is a second one that differs from the first
//   [을/를]    Korean: the form of the particle that follows what stands before it
//   [a/an]     English: the article of what stands after it
//
// An English sentence begins with a capital by itself. To add a sentence, add a line to
// templates.cpp; a test checks it and counts what it makes possible.
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

// A template made ready for filling in.
class SentencePair {
 public:
  // Slots of a template; with 16 bits for a value, a combination of them fits 64.
  static constexpr int kMostSlots = 4;

  // Throws Error, with the pattern, when the two sides do not have the same slots, a slot or a
  // bracket is malformed, or there are too many slots.
  explicit SentencePair(const Template& patterns);

  // The kinds of its slots, as they come on the Korean side.
  std::span<const int> kinds() const { return kinds_; }

  // How many sentences it makes.
  std::uint64_t sentences() const;

  // The pair of sentences with these values, one for each slot.
  Rendering operator()(std::span<const int> values) const;

 private:
  struct Piece {
    enum class Type { text, slot, choice } type;
    std::string text;  // of a choice: both forms
    int slot = 0;
  };

  std::vector<Piece> parse(std::string_view pattern, std::vector<std::string>& names) const;

  std::vector<int> kinds_;
  std::vector<Piece> korean_, english_;
};

// The values of a template's slots as one number: the numbers of its values (slot_number), in
// rising order, 16 bits each. So templates with the same values have the same number.
std::uint64_t combination_of(std::span<const int> kinds, std::span<const int> values);

}  // namespace nunchi::demo
