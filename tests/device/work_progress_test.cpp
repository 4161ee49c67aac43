#include "nunchi/device/work_progress.h"

#include <gtest/gtest.h>

namespace nunchi {
namespace {

using Stage = WorkProgress::Stage;

TEST(WorkProgress, IsReadAsItWasSet) {
  WorkProgress progress;
  EXPECT_EQ(progress.state().stage, Stage::none);
  for (const Stage stage : {Stage::encoding, Stage::reading_prompt, Stage::generating}) {
    progress.set({.stage = stage, .done = 5, .total = 1 << 20});
    EXPECT_EQ(progress.state().stage, stage);
    EXPECT_EQ(progress.state().done, 5);
    EXPECT_EQ(progress.state().total, 1 << 20);
  }
  progress.set_part(0.25);
  EXPECT_EQ(progress.state().part, 0.25);
  EXPECT_EQ(progress.state().done, 5);
  progress.set({.stage = Stage::encoding, .done = 1, .total = 2});
  EXPECT_EQ(progress.state().part, 0);
  progress.clear();
  EXPECT_EQ(progress.state().stage, Stage::none);
}

TEST(WorkProgress, NumbersOutsideOfItsRangeAreLimited) {
  WorkProgress progress;
  progress.set({.stage = Stage::generating, .done = -1, .total = std::int64_t{1} << 40});
  EXPECT_EQ(progress.state().stage, Stage::generating);
  EXPECT_EQ(progress.state().done, 0);
  EXPECT_EQ(progress.state().total, (std::int64_t{1} << 28) - 1);
}

}  // namespace
}  // namespace nunchi
