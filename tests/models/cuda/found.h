// Compares the results of searches on two devices.
#pragma once

#include <gtest/gtest.h>

#include "nunchi/decoding/searcher.h"

namespace nunchi::testing {

inline void expect_found_alike(const std::vector<Hypotheses>& found,
                               const std::vector<Hypotheses>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].size(), expected[i].size());
    for (std::size_t h = 0; h < found[i].size(); ++h) {
      EXPECT_EQ(found[i][h].tokens, expected[i][h].tokens);
      EXPECT_NEAR(found[i][h].score, expected[i][h].score, 1e-4);
    }
  }
}

}  // namespace nunchi::testing
