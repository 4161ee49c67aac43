#include "nunchi/decoding/search_units.h"

#include <gtest/gtest.h>

#include "nunchi/device/context.h"
#include "tests/errors.h"

namespace nunchi::testing {
namespace {

using Sentence = SearchUnits::Sentence;

struct Fixture {
  CpuContext context;
  nn::DecoderCache cache{
      context,
      {.layers = 1, .width = 4},
      {.units = 4, .positions = 20, .slots = 64, .memory_rows = 10, .source_length = 6}};
  SearchUnits units{cache, /*has_source=*/true};

  // A sentence whose decoder reads up to `tokens` tokens.
  static Sentence sentence(std::int64_t source_length, std::int64_t tokens, int samples = 1) {
    Sentence made;
    made.options.sample = samples > 1;
    made.options.n_best = samples;
    made.source_length = source_length;
    made.max_length = tokens;
    made.prompt = 1;  // its length: the start token alone
    return made;
  }
  std::vector<std::int64_t> enter(std::vector<Sentence> sentences) {
    const Admission admission = units.reserve(sentences);
    EXPECT_EQ(admission.refusal, "");
    return units.add(std::move(sentences));
  }
};

TEST(SearchUnits, ReserveAllOrNothing) {
  Fixture f;
  std::vector<Sentence> sentences{Fixture::sentence(4, 8), Fixture::sentence(4, 8),
                                  Fixture::sentence(4, 8)};
  const Admission refused = f.units.reserve(sentences);
  EXPECT_EQ(refused.fitting, 2);
  EXPECT_EQ(refused.refusal,
            "only 2 of 3 sentences can enter the search: a source needs 4 adjacent rows, and 2 of "
            "10 are free.");
  EXPECT_EQ(f.units.free_count(), 4);
  EXPECT_EQ(f.units.running_count(), 0);
  EXPECT_EQ(f.cache.free_slots(), 64);
  EXPECT_EQ(f.cache.free_memory_rows(), 10);
}

TEST(SearchUnits, AFinishedUnitGivesItsSlotsBackAndAFinishedSentenceItsMemory) {
  Fixture f;
  const auto ids = f.enter({Fixture::sentence(4, 8, 3), Fixture::sentence(2, 16)});
  EXPECT_EQ(f.units.running_count(), 4);
  EXPECT_EQ(f.cache.free_slots(), 64 - 3 * 8 - 16);
  f.units.mark_done(std::vector<std::int32_t>{1, 0, 1, 0});
  EXPECT_EQ(f.units.running_count(), 2);
  EXPECT_EQ(f.cache.free_slots(), 64 - 8 - 16);
  EXPECT_EQ(f.cache.free_memory_rows(), 4);
  EXPECT_FALSE(f.units.any_sentence_finished());
  f.units.mark_done(std::vector<std::int32_t>{1, 1, 1, 0});
  EXPECT_TRUE(f.units.any_sentence_finished());
  EXPECT_EQ(f.cache.free_memory_rows(), 8);
  EXPECT_EQ(f.units.free_count(), 0) << "results are still in the units' rows";
  std::vector<std::int64_t> removed;
  f.units.remove_finished_sentences([&](std::int64_t id, const Sentence& sentence) {
    removed.push_back(id);
    EXPECT_EQ(sentence.units, (std::vector<std::int64_t>{0, 1, 2}));
  });
  EXPECT_EQ(removed, std::vector<std::int64_t>{ids[0]});
  EXPECT_EQ(f.units.free_count(), 3);
  EXPECT_NE(error_of([&] { f.units.sentence(ids[0]); }).find("no sentence"), std::string::npos);
}

TEST(SearchUnits, StepsLeftAreThoseOfTheLongestUnit) {
  Fixture f;
  f.enter({Fixture::sentence(1, 8), Fixture::sentence(1, 12)});
  EXPECT_EQ(f.units.steps_left(), 11);
  EXPECT_EQ(f.units.max_length_after_next_step(), 2);
  f.units.advance(9);
  EXPECT_EQ(f.units.steps_left(), 2);
  EXPECT_EQ(f.units.max_length_after_next_step(), 11);
  f.units.mark_done(std::vector<std::int32_t>{0, 1, 0, 0});
  EXPECT_EQ(f.units.steps_left(), 0);
  f.units.mark_all_done();
  EXPECT_EQ(f.units.running_count(), 0);
}

TEST(SearchUnits, ClearGivesEverythingBack) {
  Fixture f;
  f.enter({Fixture::sentence(4, 8), Fixture::sentence(5, 16)});
  f.units.provide_slots(3);
  f.units.clear();
  EXPECT_EQ(f.units.free_count(), 4);
  EXPECT_EQ(f.units.running_count(), 0);
  EXPECT_EQ(f.cache.free_slots(), 64);
  EXPECT_EQ(f.cache.free_memory_rows(), 10);
}

}  // namespace
}  // namespace nunchi::testing
