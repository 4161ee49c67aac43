#include "nunchi/nn/row_ranges.h"

#include <gtest/gtest.h>

namespace nunchi::testing {
namespace {

using nn::RowRanges;

TEST(RowRanges, TheFirstRangeThatIsLongEnoughIsTaken) {
  RowRanges rows(20);
  EXPECT_EQ(rows.take(5), 0);
  EXPECT_EQ(rows.take(7), 5);
  EXPECT_EQ(rows.take(8), 12);
  EXPECT_EQ(rows.free_rows(), 0);
  EXPECT_EQ(rows.take(1), std::nullopt);
  rows.release(0, 5);
  rows.release(12, 8);
  EXPECT_EQ(rows.take(6), 12);
  EXPECT_EQ(rows.take(5), 0);
  EXPECT_EQ(rows.take(3), std::nullopt) << "two rows are free";
  EXPECT_EQ(rows.free_rows(), 2);
}

TEST(RowRanges, AdjacentFreeRangesAreMerged) {
  for (const auto& order : {std::vector{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}}) {
    RowRanges rows(9);
    for (int i = 0; i < 3; ++i) rows.take(3);
    for (const int i : order) rows.release(3 * i, 3);
    EXPECT_EQ(rows.free_rows(), 9);
    EXPECT_EQ(rows.take(9), 0);
  }
}

TEST(RowRanges, ARequestForZeroRowsAlwaysSucceeds) {
  RowRanges none(0);
  EXPECT_EQ(none.take(0), 0);
  none.release(0, 0);
  EXPECT_EQ(none.take(1), std::nullopt);
}

}  // namespace
}  // namespace nunchi::testing
