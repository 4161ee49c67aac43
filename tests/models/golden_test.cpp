// The model against PyTorch, from the files that tests/golden/make_golden.py wrote.
#include "tests/models/golden.h"

#include <cstdlib>

#include "nunchi/models/transformer.h"

namespace nunchi::testing {
namespace {

using GoldenTransformer = Golden<Transformer, TransformerConfig>;

class GoldenFiles : public GoldenTransformer, public ::testing::WithParamInterface<const char*> {};

TEST_P(GoldenFiles, LogitsLossGradientsAndTenStepsAgreeWithPyTorch) {
  compare_everything(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Small, GoldenFiles, ::testing::Values("post", "pre", "options", "gelu"));

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
