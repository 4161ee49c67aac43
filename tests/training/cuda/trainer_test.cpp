// A run on the GPU: stopped and resumed it gives the same bits, and its model serves the CPU.
#include <atomic>

#include "nunchi/models/folder.h"
#include "nunchi/training/checkpoint.h"
#include "tests/kernels/cuda/compare.h"
#include "tests/training/tiny_run.h"

namespace nunchi::testing {
namespace {

using Begin = RunFolder::Begin;

TEST(CudaTrainer, AResumedRunIsTheRunThatNeverStopped) {
  SKIP_WITHOUT_GPU();
  for (const char* precision : {"f32", "bf16"}) {
    const ContextOptions device{.device = "cuda", .precision = precision};
    const TemporaryFolder folder;
    TinyRun whole(folder / "whole", Begin::fresh, tiny_config(), device);
    EXPECT_EQ(whole.train(), TrainingEnd::finished);
    std::vector<float> weights;
    for (const std::int64_t stop_after : {2, 5, 11, 12}) {
      std::atomic<bool> stop = false;
      TinyRun part(folder / "parts", stop_after == 2 ? Begin::fresh : Begin::resume, tiny_config(),
                   device);
      TrainerHooks hooks;
      hooks.stop = &stop;
      hooks.progress = [&](const TrainingProgress& progress) {
        if (progress.step == stop_after) stop = true;
      };
      part.train(std::move(hooks));
      EXPECT_EQ(part.state().step, stop_after);
      weights = part.weights();
    }
    EXPECT_TRUE(same_bits(whole.weights(), weights)) << precision;
    // The weights are kept in f32, whatever the steps compute in.
    CpuContext cpu;
    const auto loaded = load_model(folder / "whole/checkpoints/step-12", cpu);
    EXPECT_TRUE(same_bits(to_host<float>(loaded->parameters().weights()), whole.weights()));
  }
}

TEST(CudaTrainer, ALossThatIsNoNumberChangesNothing) {
  SKIP_WITHOUT_GPU();
  const TemporaryFolder folder;
  TinyRun run(folder.path(), Begin::fresh, tiny_config(), ContextOptions{.device = "cuda"});
  nn::Parameters& parameters = run.model().parameters();
  fill(parameters.weight(*parameters.find("encoder.layers.1.feed_forward.down.bias")), NAN);
  parameters.changed();
  const std::string message = error_of([&] { run.train(); });
  EXPECT_NE(message.find("3 steps in"), std::string::npos) << message;
}

}  // namespace
}  // namespace nunchi::testing
