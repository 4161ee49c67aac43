// The model against PyTorch, from the files that tests/golden/make_golden.py wrote.
#include "tests/models/golden.h"

#include <cstdlib>

#include "nunchi/models/t5.h"

namespace nunchi::testing {
namespace {

using GoldenTransformer = Golden<Transformer, TransformerConfig>;

class GoldenFiles : public GoldenTransformer, public ::testing::WithParamInterface<const char*> {};

TEST_P(GoldenFiles, LogitsLossGradientsAndTenStepsAgreeWithPyTorch) {
  compare_everything(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Small, GoldenFiles,
                         ::testing::Values("post", "pre", "options", "gelu", "rotary", "alibi",
                                           "clipped", "relative"));

// Those are Hugging Face's.
using GoldenT5 = Golden<T5, T5Config>;

TEST_F(GoldenT5, Version1AgreesWithPyTorch) { compare_everything("t5"); }
TEST_F(GoldenT5, Version1Point1AgreesWithPyTorch) { compare_everything("t5_v1_1"); }

TEST_F(GoldenTransformer, BaseSizeAgreesWithPyTorch) {
  const char* path = std::getenv("NUNCHI_GOLDEN_BASE");
  if (path == nullptr)
    GTEST_SKIP() << "tests/golden/compare_base.sh makes the file for this (needs PyTorch)";
  open(path, DType::f32);
  compare(1e-4);
  compare_steps("losses", {.max_norm = 1}, 1e-4);
}

}  // namespace
}  // namespace nunchi::testing
