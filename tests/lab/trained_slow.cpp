// The trained labs in full: the verdicts that docs/lab.md reports, for three seeds.
#include <gtest/gtest.h>

#include "nunchi/lab/report.h"

namespace nunchi::testing {
namespace {

struct Expected {
  const char* lab;
  lab::Verdict verdict;
};

class WholeLab : public ::testing::TestWithParam<Expected> {};

TEST_P(WholeLab, HasTheSameVerdictForThreeSeeds) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    CpuContext context;
    const lab::Report report =
        lab::run(lab::find_lab(GetParam().lab), {.context = context, .seed = seed});
    EXPECT_EQ(report.verdict, GetParam().verdict)
        << "seed " << seed << ": " << report.result.finding.en;
  }
}

using enum lab::Verdict;
INSTANTIATE_TEST_SUITE_P(Labs, WholeLab,
                         ::testing::Values(Expected{"order", holds}, Expected{"mask", holds},
                                           Expected{"heads", partly},
                                           Expected{"coreference", holds}, Expected{"cat", partly},
                                           Expected{"bottleneck", holds},
                                           Expected{"teacher-forcing", holds},
                                           Expected{"residual", holds}, Expected{"length", fails},
                                           Expected{"places", fails}, Expected{"search", holds},
                                           Expected{"scale", holds}, Expected{"learning", holds}),
                         [](const auto& info) {
                           std::string name = info.param.lab;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace nunchi::testing
