#include "nunchi/nn/slot_blocks.h"

#include <gtest/gtest.h>

#include <set>

#include "nunchi/base/error.h"

namespace nunchi::testing {
namespace {

using nn::SlotBlocks;

std::vector<std::int32_t> blocks_of(const SlotBlocks& blocks, std::int64_t unit,
                                    std::int64_t count) {
  const auto begin = blocks.table().begin() + unit * blocks.stride();
  return {begin, begin + count};
}

TEST(SlotBlocks, ReservationsHaveAHardBound) {
  SlotBlocks blocks({.units = 3, .unit_slots = 40, .slots = 64});
  EXPECT_EQ(blocks.free_slots(), 64);
  EXPECT_TRUE(blocks.reserve(0, 33));  // five blocks of eight
  EXPECT_EQ(blocks.free_slots(), 24);
  EXPECT_FALSE(blocks.reserve(1, 25));
  EXPECT_EQ(blocks.free_slots(), 24);
  EXPECT_TRUE(blocks.reserve(1, 24));
  EXPECT_EQ(blocks.free_slots(), 0);
  EXPECT_FALSE(blocks.reserve(2, 1));
  blocks.release(0);
  EXPECT_EQ(blocks.free_slots(), 40);
  EXPECT_FALSE(blocks.reserve(2, 41)) << "more than a unit can have";
  EXPECT_TRUE(blocks.reserve(2, 40));
}

TEST(SlotBlocks, AUnitTakesWhatItReserved) {
  SlotBlocks blocks({.units = 2, .unit_slots = 64, .slots = 64});
  EXPECT_THROW(blocks.take(0, 1), Error);
  ASSERT_TRUE(blocks.reserve(0, 20));
  EXPECT_TRUE(blocks.take(0, 3));
  EXPECT_FALSE(blocks.take(0, 8)) << "the block has eight slots";
  EXPECT_TRUE(blocks.take(0, 9));
  EXPECT_EQ(blocks_of(blocks, 0, 2), (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(blocks.used_slots(), 16);
  EXPECT_TRUE(blocks.take(0, 24));
  EXPECT_THROW(blocks.take(0, 25), Error);
  EXPECT_THROW(blocks.reserve(0, 1), Error);
}

TEST(SlotBlocks, FreeBlocksAreTakenBeforeNewOnes) {
  SlotBlocks blocks({.units = 3, .unit_slots = 64, .slots = 192});
  for (const std::int64_t unit : {0, 1, 2}) ASSERT_TRUE(blocks.reserve(unit, 64));
  blocks.take(0, 16);
  blocks.take(1, 24);
  blocks.take(2, 8);
  EXPECT_EQ(blocks.used_slots(), 48);
  blocks.release(1);
  blocks.release(0);
  ASSERT_TRUE(blocks.reserve(1, 64));
  blocks.take(1, 24);
  blocks.take(2, 32);
  EXPECT_EQ(blocks_of(blocks, 1, 3), (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(blocks_of(blocks, 2, 4), (std::vector<std::int32_t>{5, 3, 4, 6}));
  EXPECT_EQ(blocks.used_slots(), 56);
}

TEST(SlotBlocks, NoTwoUnitsShareABlock) {
  SlotBlocks blocks({.units = 8, .unit_slots = 100, .slots = 400});
  std::vector<std::int64_t> taken(8, 0), reserved(8, 0);
  for (std::int64_t i = 0; i < 2000; ++i) {
    const std::int64_t unit = i * 5 % 8, slots = 1 + i * 37 % 100;
    const auto u = static_cast<std::size_t>(unit);
    if (reserved[u] == 0) {
      if (blocks.reserve(unit, slots)) reserved[u] = slots;
    } else if (taken[u] < reserved[u]) {
      taken[u] = std::min(reserved[u], taken[u] + 1 + i % 30);
      blocks.take(unit, taken[u]);
    } else {
      blocks.release(unit);
      taken[u] = reserved[u] = 0;
    }
    std::set<std::int32_t> seen;
    for (std::int64_t v = 0; v < 8; ++v) {
      const std::int64_t count = SlotBlocks::blocks_for(taken[static_cast<std::size_t>(v)]);
      for (const std::int32_t block : blocks_of(blocks, v, count)) {
        ASSERT_TRUE(seen.insert(block).second) << "block " << block << " is taken twice";
        ASSERT_LT(block, 400 / SlotBlocks::kSlots);
      }
    }
  }
}

}  // namespace
}  // namespace nunchi::testing
