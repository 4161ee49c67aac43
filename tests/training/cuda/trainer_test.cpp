// A run on the GPU: resuming gives the same bits, and the CPU can load its model.
#include "nunchi/models/format/folder.h"
#include "nunchi/training/run/checkpoint.h"
#include "tests/kernels/cuda/compare.h"
#include "tests/training/resumed_run.h"

namespace nunchi::testing {
namespace {

using StartMode = RunFolder::StartMode;

TEST(CudaTrainer, AResumedRunGivesTheBitsOfAnUninterruptedRun) {
  SKIP_WITHOUT_GPU();
  for (const char* precision : {"f32", "bf16"}) {
    const ContextOptions device{.device = "cuda", .precision = precision};
    expect_same_when_resumed(tiny_config(), device, {2, 5, 11, 12});
  }
}

TEST(CudaTrainer, AResumedRunContinuesTheMovingAverage) {
  SKIP_WITHOUT_GPU();
  TrainConfig config = tiny_config();
  config.training.ema = 0.9;
  for (const char* precision : {"f32", "bf16"}) {
    expect_same_when_resumed(config, {.device = "cuda", .precision = precision}, {2, 5, 11, 12});
  }
}

TEST(CudaTrainer, TheMovingAverageIsThatOfTheCpu) {
  SKIP_WITHOUT_GPU();
  const auto averages = [](ContextBase& context) {
    nn::Parameters parameters;
    parameters.add("a", {1'053'009}, nn::Init::normal(1));
    parameters.allocate(context, {.dtype = DType::f32, .gradients = true});
    parameters.initialize(1);
    MovingAverage average(parameters, 0.9);
    for (int update = 1; update <= 5; ++update) {
      parameters.initialize(static_cast<std::uint64_t>(update) + 7);
      average.update(update);
    }
    return to_host<float>(average.weights());
  };
  CpuContext cpu;
  const auto gpu = make_context({.device = "cuda"});
  EXPECT_LT(largest_difference(averages(cpu), averages(*gpu)), 1e-6);
}

TEST(CudaTrainer, TheCpuCanLoadItsModel) {
  SKIP_WITHOUT_GPU();
  for (const char* precision : {"f32", "bf16"}) {
    const TemporaryFolder folder;
    TinyRun run(folder.path(), StartMode::fresh, tiny_config(),
                ContextOptions{.device = "cuda", .precision = precision});
    EXPECT_EQ(run.train(), TrainingEnd::finished);
    // The weights are kept in f32 for every precision.
    CpuContext cpu;
    const auto loaded = load_model(folder / "checkpoints/step-12", cpu);
    EXPECT_TRUE(same_bits(to_host<float>(loaded->parameters().weights()), run.weights()));
  }
}

TEST(CudaTrainer, NanLossesEndTheRun) {
  SKIP_WITHOUT_GPU();
  const TemporaryFolder folder;
  TinyRun run(folder.path(), StartMode::fresh, tiny_config(), ContextOptions{.device = "cuda"});
  nn::Parameters& parameters = run.model().parameters();
  fill(parameters.weight(*parameters.find("encoder.layers.1.feed_forward.down.bias")), NAN);
  parameters.changed();
  const std::string message = error_of([&] { run.train(); });
  EXPECT_NE(message.find("3 steps in"), std::string::npos) << message;
}

}  // namespace
}  // namespace nunchi::testing
