// `nunchi bench`.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/errors.h"

namespace nunchi::testing {
namespace {

TEST(BenchTrain, EveryFamilyHasPresets) {
  for (const std::string preset :
       {"small", "bert-small", "t5-tiny", "t5-v1.1-small", "rnn-small", "tiny"}) {
    const ProgramResult result =
        run("bench train --preset " + preset +
            " --sentences 2 --length 8 --vocab 50 --steps 1 --warmup 1 --json");
    EXPECT_EQ(result.code, 0) << preset << result.error;
    const auto json = nlohmann::json::parse(result.out);
    EXPECT_GT(json["target_tokens_per_s"], 0);
    EXPECT_NEAR(json["first_loss"].get<double>(), std::log(50.0), 1.2) << preset;
  }
  EXPECT_TRUE(says(run("bench train --preset huge").error, "there is no preset 'huge'"));
  const ProgramResult longer = run("bench train --preset bert-small --sentences 1 --length 513");
  EXPECT_EQ(longer.code, 2);
  EXPECT_TRUE(says(longer.error, "the model has 512 positions")) << longer.error;
}

}  // namespace
}  // namespace nunchi::testing
