// The data of the demo: Korean sentences about dates, times, numbers, prices, places and meetings
// with their English translations, generated from templates.
//
// The two languages order the parts of a sentence differently ("2026년 11월 15일 일요일 오후 3시
// 20분에 서울에서 만나요": "Let's meet in Seoul at 3:20 PM on Sunday, November 15, 2026"), so a
// model has to learn an alignment. Each source has exactly one correct translation, and each
// translation exactly one source.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nunchi/demo/templates.h"

namespace nunchi {

struct DemoPair {
  std::string korean, english;
  int template_index = 0;
  std::uint64_t combination = 0;  // see combination_key() in demo/templates.h
  // The Korean words (sources) that each English content word of a slot (target) translates, one or
  // more for a word: see demo/slots.h.
  std::vector<WordLink> links = {};
};

// An endless sequence of pairs, each a function of seed and index. Thread-safe.
class DemoGenerator {
 public:
  explicit DemoGenerator(std::uint64_t seed);

  // All templates are equally likely, and so are all values of a slot.
  DemoPair at(std::uint64_t index) const;

  // Whether pairs with this combination of values are held out: one in 16, selected by the seed.
  bool is_held_out(std::uint64_t combination) const;

  static int template_count();
  static std::uint64_t possible_sentences();

 private:
  std::uint64_t seed_;
  std::vector<demo::ParsedTemplate> templates_;
};

struct DemoData {
  std::vector<DemoPair> training, held_out;
};

// Generates training and held-out pairs, all different. No held-out pair shares its source, its
// target or its combination of slot values (even in another template) with a training pair. Throws
// UsageError for a count below zero or above ten million.
DemoData make_demo_data(std::uint64_t seed, std::int64_t training, std::int64_t held_out);

}  // namespace nunchi
