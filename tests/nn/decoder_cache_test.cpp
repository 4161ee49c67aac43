#include "nunchi/nn/decoder_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "nunchi/base/error.h"
#include "nunchi/ops/tensors.h"
#include "tests/support.h"

namespace nunchi::testing {
namespace {

using nn::DecoderCache;
using Numbers = std::vector<std::int32_t>;

// A cache whose slots are followed by lists.
class TrackedCache {
 public:
  explicit TrackedCache(const nn::CacheLimits& limits, int layers = 2)
      : cache(context, {.layers = layers, .width = 6}, limits) {}

  Tensor tensor(const Numbers& values) {
    return from_host(context, values, {static_cast<std::int64_t>(values.size())});
  }
  nn::StepTokens tokens(const Numbers& units, std::int64_t count) {
    return {.hypotheses = std::ssize(units),
            .tokens = count,
            .ids = tensor(Numbers(static_cast<std::size_t>(nn::decode_capacity(count)), 0)),
            .units = tensor(units)};
  }

  void admit(std::int64_t unit, std::int64_t prompt, std::int64_t max_length) {
    ASSERT_TRUE(cache.admit(unit, {.prompt = prompt, .max_length = max_length}));
    prompt_[unit] = prompt;
  }
  // The first step of units; returns the rows that later steps have as parents.
  std::int64_t enter(const Numbers& units) {
    Numbers offsets{0};
    for (const std::int32_t u : units) {
      offsets.push_back(offsets.back() + static_cast<std::int32_t>(prompt_[u]));
      cache.provide_slots(u, prompt_[u]);
    }
    cache.publish();
    const std::int64_t first = cache.next_first_row();
    nn::StepTokens step = tokens(units, offsets.back());
    step.offsets = tensor(offsets);
    const nn::DecodeStep made = cache.extend(step);
    EXPECT_EQ(made.table_row, first);
    for (std::size_t h = 0; h < units.size(); ++h) {
      rows_[first + static_cast<std::int64_t>(h)] = {};
      follow(made, units[h], first + static_cast<std::int64_t>(h), h, offsets[h],
             offsets[h + 1] - offsets[h]);
    }
    return first;
  }
  // A token for each hypothesis.
  void step(const Numbers& units, const Numbers& parents) {
    std::map<std::int64_t, Numbers> before = rows_;
    for (std::size_t h = 0; h < units.size(); ++h) {
      cache.provide_slots(units[h], std::ssize(before.at(parents[h])) + 1);
    }
    cache.publish();
    nn::StepTokens step = tokens(units, std::ssize(units));
    step.parents = tensor(parents);
    const nn::DecodeStep made = cache.extend(step);
    rows_.clear();
    for (std::size_t h = 0; h < units.size(); ++h) {
      rows_[static_cast<std::int64_t>(h)] = before.at(parents[h]);
      follow(made, units[h], static_cast<std::int64_t>(h), h, static_cast<std::int32_t>(h), 1);
    }
  }
  void leave(std::int64_t unit) {
    cache.release(unit);
    std::erase_if(owner_, [&](const auto& entry) { return entry.second == unit; });
  }
  std::int64_t slots_in_use() const { return std::ssize(owner_); }

  CpuContext context;
  DecoderCache cache;

 private:
  // Row r of the table is now what it was and `count` new slots, which no other unit has.
  void follow(const nn::DecodeStep& made, std::int32_t unit, std::int64_t row, std::size_t h,
              std::int32_t first_token, std::int32_t count) {
    Numbers& list = rows_[row];
    const auto slots = to_host<std::int32_t>(made.row_slot);
    const auto visible = to_host<std::int32_t>(made.past.length);
    for (std::int32_t i = 0; i < count; ++i) {
      const std::int32_t slot = slots[static_cast<std::size_t>(std::int64_t{first_token} + i)];
      const auto [at, is_new] = owner_.emplace(slot, unit);
      EXPECT_TRUE(is_new) << "slot " << slot << " is in use by unit " << at->second;
      EXPECT_LT(slot, cache.layer(0).size(0));
      list.push_back(slot);
      EXPECT_EQ(visible[static_cast<std::size_t>(first_token + i)], std::ssize(list));
    }
    const auto table = to_host<std::int32_t>(made.past.slot.rows(static_cast<std::int64_t>(h), 1));
    EXPECT_EQ(Numbers(table.begin(), table.begin() + std::ssize(list)), list);
  }

  std::map<std::int64_t, std::int64_t> prompt_;  // of each unit
  std::map<std::int64_t, Numbers> rows_;         // of the table
  std::map<std::int32_t, std::int32_t> owner_;   // of each slot that is in use
};

TEST(DecoderCache, UnitsJoinOthersBetweenSteps) {
  TrackedCache c({.units = 3, .beam = 2, .positions = 20});
  c.admit(0, 1, 20);
  c.admit(1, 4, 20);
  const auto first = static_cast<std::int32_t>(c.enter({0, 1}));
  c.step({0, 0, 1, 1}, {first, first, first + 1, first + 1});
  c.step({0, 0, 1, 1}, {1, 0, 2, 2});
  // Unit 2 enters in two tokens while the others go on, and once more after it has left.
  for (int time = 0; time < 2; ++time) {
    c.admit(2, 2, 10);
    const auto entered = static_cast<std::int32_t>(c.enter({2}));
    c.step({0, 0, 1, 1, 2, 2}, {0, 1, 3, 2, entered, entered});
    c.step({0, 0, 1, 1, 2, 2}, {0, 1, 2, 3, 5, 4});
    c.step({0, 0, 1, 1}, {0, 0, 3, 2});
    c.leave(2);
  }
}

TEST(DecoderCache, SlotsOfUnitsThatLeaveAreTakenAgain) {
  TrackedCache c({.units = 2, .beam = 2, .positions = 9});
  for (int time = 0; time < 20; ++time) {
    const std::int32_t unit = time % 2;
    c.admit(unit, 1, 9);
    const auto first = static_cast<std::int32_t>(c.enter({unit}));
    c.step({unit, unit}, {first, first});
    for (int i = 0; i < 6; ++i) c.step({unit, unit}, {1, 0});
    EXPECT_EQ(c.slots_in_use(), 15);
    c.leave(unit);
  }
  EXPECT_EQ(c.cache.layer(0).size(0), 48) << "twice 1 + 8 * 2 slots, in blocks of eight";
  EXPECT_EQ(c.cache.free_slots(), 48);
}

TEST(DecoderCache, HasHardBounds) {
  TrackedCache c(
      {.units = 4, .beam = 3, .positions = 10, .slots = 40, .memory_rows = 12, .source_length = 8});
  EXPECT_EQ(c.cache.free_slots(), 40);
  EXPECT_FALSE(c.cache.admit(0, {.prompt = 1, .max_length = 11}))
      << "more positions than there are";
  EXPECT_FALSE(c.cache.admit(0, {.prompt = 1, .max_length = 5, .memory_length = 9}));
  EXPECT_TRUE(c.cache.admit(0, {.prompt = 1, .max_length = 10}));  // 28 slots
  EXPECT_EQ(c.cache.free_slots(), 8);
  EXPECT_FALSE(c.cache.admit(1, {.prompt = 1, .max_length = 4}));
  EXPECT_TRUE(c.cache.admit(1, {.prompt = 2, .max_length = 4}));  // 8 slots
  EXPECT_FALSE(c.cache.admit(2, {.prompt = 1, .max_length = 1}));
  EXPECT_EQ(c.cache.take_memory(8), 0);
  EXPECT_EQ(c.cache.take_memory(5), std::nullopt);
  EXPECT_EQ(c.cache.take_memory(4), 8);
  c.cache.release(0);
  c.cache.release(1);
  c.cache.release_memory(0, 8);
  c.cache.release_memory(8, 4);
  EXPECT_EQ(c.cache.free_slots(), 40);
  EXPECT_EQ(c.cache.free_memory_rows(), 12);
}

TEST(DecoderCache, FirstStepsHaveRowsUntilTheNextOtherStep) {
  TrackedCache c({.units = 2, .beam = 1, .positions = 5});
  c.admit(0, 1, 5);
  c.admit(1, 1, 5);
  EXPECT_EQ(c.cache.free_first_rows(), 2);
  const auto first = static_cast<std::int32_t>(c.enter({0}));
  EXPECT_EQ(c.enter({1}), first + 1);
  EXPECT_EQ(c.cache.free_first_rows(), 0);
  EXPECT_THROW(c.cache.extend(c.tokens({0}, 1)), Error);
  c.step({0, 1}, {first, first + 1});
  EXPECT_EQ(c.cache.free_first_rows(), 2);
}

TEST(DecoderCache, TellsWhenItsLayersMove) {
  TrackedCache c({.units = 2, .beam = 1, .positions = 100});
  c.admit(0, 1, 100);
  const auto first = static_cast<std::int32_t>(c.enter({0}));
  EXPECT_TRUE(c.cache.take_moved());
  EXPECT_FALSE(c.cache.take_moved());
  c.step({0}, {first});
  EXPECT_FALSE(c.cache.take_moved()) << "there were slots enough";
  for (int i = 0; i < 70; ++i) c.step({0}, {0});
  EXPECT_TRUE(c.cache.take_moved());
}

TEST(DecoderCache, KeysStayWhenLayersGrow) {
  TrackedCache c({.units = 1, .beam = 1, .positions = 300}, 1);
  c.admit(0, 1, 300);
  auto row = static_cast<std::int32_t>(c.enter({0}));
  for (std::int32_t i = 0; i < 200; ++i) {
    c.step({0}, {std::exchange(row, 0)});
    // The i-th token's keys are its number.
    fill(c.cache.layer(0).rows(i + 1, 1), i);
  }
  for (std::int32_t i = 0; i < 200; ++i) {
    EXPECT_EQ(to_host<float>(c.cache.layer(0).rows(i + 1, 1))[0], static_cast<float>(i));
  }
}

}  // namespace
}  // namespace nunchi::testing
