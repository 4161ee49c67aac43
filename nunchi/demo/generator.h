// The data of the demo: Korean sentences about dates, times, numbers, prices, places and meetings
// with their English translations, made up inside the program.
//
// The languages put their parts in different orders ("2026년 11월 15일 일요일 오후 3시 20분에
// 서울에서 만나요": "Let's meet in Seoul at 3:20 PM on Sunday, November 15, 2026"), so a model has
// to learn where to look. A source has one right translation and a translation one source.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nunchi/demo/templates.h"

namespace nunchi {

struct DemoPair {
  std::string korean, english;
  int template_index = 0;
  std::uint64_t combination = 0;  // of slot values, whatever the template (demo/templates.h)
};

// An endless row of pairs. Pairs are a function of seed and index; indices in any order, from any
// number of threads.
class DemoGenerator {
 public:
  explicit DemoGenerator(std::uint64_t seed);

  // Every template is as likely as the others, and so is every value of a slot.
  DemoPair at(std::uint64_t index) const;

  // Whether pairs with this combination of values are kept from training: one in 16, by the seed.
  bool held_out(std::uint64_t combination) const;

  static int templates();
  static std::uint64_t possible_sentences();

 private:
  std::uint64_t seed_;
  std::vector<demo::SentencePair> patterns_;
};

struct DemoData {
  std::vector<DemoPair> training, held_out;
};

// That many different pairs of each. No held-out pair shares its source, its target or its
// combination of slot values, in whichever template, with one of training. Throws UsageError for
// a count below zero or above ten million.
DemoData make_demo_data(std::uint64_t seed, std::int64_t training, std::int64_t held_out);

}  // namespace nunchi
