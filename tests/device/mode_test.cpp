#include "nunchi/device/mode.h"

#include <gtest/gtest.h>

#include "nunchi/device/context.h"

namespace nunchi::testing {
namespace {

TEST(Mode, IsEvaluatingByDefault) {
  CpuContext context({.threads = 1});
  EXPECT_EQ(context.mode(), Mode::evaluating);
  EXPECT_FALSE(context.is_training());
}

TEST(Mode, AScopeRestoresThePreviousMode) {
  CpuContext context({.threads = 1});
  {
    const ModeScope outer(context, Mode::training);
    EXPECT_TRUE(context.is_training());
    {
      const ModeScope inner(context, Mode::evaluating);
      EXPECT_FALSE(context.is_training());
    }
    EXPECT_TRUE(context.is_training());
  }
  EXPECT_FALSE(context.is_training());
}

}  // namespace
}  // namespace nunchi::testing
