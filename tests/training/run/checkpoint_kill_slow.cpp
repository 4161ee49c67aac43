// A process that writes checkpoints is killed at random moments; every checkpoint can be loaded.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "nunchi/training/run/checkpoint.h"
#include "nunchi/training/run/run_folder.h"
#include "tests/files.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

namespace fs = std::filesystem;

// Writes checkpoints in which every number is the step.
struct Writer {
  Writer()
      : context({.threads = 1}),
        model(make_small<Transformer>(context, small_config(), {.gradients = true})),
        optimizer(model->parameters(), {}) {}

  // Fills entry by entry, since the gaps in the flat buffers must stay zero.
  void fill_with(float value) const {
    for (const nn::ParameterEntry& entry : model->parameters().entries()) {
      fill(entry.variable.value(), value);
      fill(optimizer.first_moment().flat_slice(entry.offset, entry.shape), value);
      fill(optimizer.second_moment().flat_slice(entry.offset, entry.shape), value);
    }
  }
  [[noreturn]] void write_forever(const fs::path& folder, std::int64_t step) {
    for (;;) {
      ++step;
      fill_with(static_cast<float>(step));
      optimizer.set_steps(step);
      TrainerState state;
      state.step = step;
      write_checkpoint(folder, {*model, optimizer, state, {}});
      remove_old_checkpoints(folder, 2, {});
    }
  }
  void expect_complete(const fs::path& folder, std::int64_t step) {
    fill_with(-1);
    const TrainerState state = load_checkpoint(checkpoint_path(folder, step), *model, optimizer);
    EXPECT_EQ(state.step, step);
    EXPECT_EQ(optimizer.steps(), step);
    for (const nn::ParameterEntry& entry : model->parameters().entries()) {
      for (const Tensor& tensor :
           {entry.variable.value(), optimizer.first_moment().flat_slice(entry.offset, entry.shape),
            optimizer.second_moment().flat_slice(entry.offset, entry.shape)}) {
        for (const float value : to_host<float>(tensor)) {
          ASSERT_EQ(value, static_cast<float>(step)) << entry.name;
        }
      }
    }
  }

  CpuContext context;
  std::unique_ptr<Transformer> model;
  AdamOptimizer optimizer;
};

TEST(CheckpointKilled, EveryCheckpointCanBeLoaded) {
  constexpr int kTimes = 200;
  const TemporaryFolder folder;
  Writer writer;
  std::mt19937 random(1);
  std::int64_t last = 0;
  {
    RunFolder run(folder.path(), RunFolder::StartMode::fresh);
    run.start();
  }
  for (int time = 0; time < kTimes; ++time) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) writer.write_forever(folder / "checkpoints", last);
    ::usleep(random() % 60'000);
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer exited instead of being killed";

    const RunFolder run(folder.path(), RunFolder::StartMode::resume);
    const std::vector<std::int64_t> steps = checkpoint_steps(run.checkpoints());
    ASSERT_TRUE(!steps.empty() || last == 0) << "the checkpoint of step " << last << " is gone";
    for (const std::int64_t step : steps) writer.expect_complete(run.checkpoints(), step);
    ASSERT_FALSE(::testing::Test::HasFailure());
    if (!steps.empty()) {
      EXPECT_GE(steps.back(), last);
      last = steps.back();
    }
    const auto entries = std::distance(fs::directory_iterator(run.checkpoints()), {});
    EXPECT_EQ(static_cast<std::size_t>(entries), steps.size()) << "temporary folders are left";
  }
  EXPECT_GT(last, kTimes / 4);
}

}  // namespace
}  // namespace nunchi::testing
