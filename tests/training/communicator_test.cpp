// Several workers train one model: their sums, and results that do not depend on their number.
#include "nunchi/training/communicator.h"

#include <atomic>

#include "nunchi/training/objectives/translation.h"
#include "tests/training/resumed_run.h"
#include "tests/training/thread_communicator.h"

namespace nunchi::testing {
namespace {

using StartMode = RunFolder::StartMode;

TEST(Communicator, SumsInATreeOverTheRanks) {
  // In f32 a 1 is lost beside 1e8: (1e8 + 1) + (1 - 1e8) is 0, where adding one rank after the
  // other gives 1.
  const std::vector<float> values = {1e8f, 1, -1e8f, 1};
  ThreadGroup::run(4, [&](Communicator& communicator) {
    CpuContext context({.threads = 1});
    const Tensor tensor = zeros(context, DType::f32, {2});
    fill(tensor, values[static_cast<std::size_t>(communicator.rank())]);
    communicator.all_reduce(tensor);
    EXPECT_EQ(to_host<float>(tensor), (std::vector<float>{0, 0}));
    EXPECT_EQ(communicator.sum(communicator.rank()), 6);
    EXPECT_TRUE(communicator.any(communicator.rank() == 2));
    EXPECT_FALSE(communicator.any(false));
  });
}

TEST(Communicator, BroadcastsTheLeadersValues) {
  ThreadGroup::run(3, [&](Communicator& communicator) {
    CpuContext context({.threads = 1});
    const Tensor tensor = zeros(context, DType::f64, {3});
    fill(tensor, communicator.rank() + 0.5);
    communicator.broadcast(tensor);
    EXPECT_EQ(to_host<double>(tensor), (std::vector<double>(3, 0.5)));
    std::string text(static_cast<std::size_t>(communicator.rank()) + 1, 'x');
    communicator.broadcast(text);
    EXPECT_EQ(text, "x");
    EXPECT_EQ(communicator.from_leader(std::optional<double>(communicator.rank())), 0.0);
    communicator.barrier();
  });
}

TEST(Communicator, ASingleProcessKeepsItsValues) {
  SingleProcess single;
  EXPECT_TRUE(single.is_leader());
  EXPECT_EQ(single.sum(7), 7);
  EXPECT_EQ(single.from_leader(2.5), 2.5);
}

// The micro-batches of each step, of different sizes.
std::vector<std::vector<HostBatch>> make_steps(int steps, int micro_batches) {
  std::vector<std::vector<HostBatch>> batches_of_step;
  std::uint64_t seed = 1;
  for (int step = 0; step < steps; ++step) {
    std::vector<HostBatch>& batches = batches_of_step.emplace_back();
    for (std::int32_t i = 0; i < micro_batches; ++i) {
      HostBatch& batch = batches.emplace_back();
      batch.targets = sentences_of({2 + i % 3, 5, 1 + i}, 37, seed++);
      std::vector<Tokens> sources;
      for (const Tokens& target : batch.targets) {
        sources.push_back(target);
        sources.back().push_back(kTokens.end);
        batch.pairs.push_back(static_cast<std::int64_t>(batch.pairs.size()));
      }
      batch.sources = std::move(sources);
    }
  }
  return batches_of_step;
}

struct TrainingResult {
  std::vector<float> weights;
  std::vector<double> losses, norms;
  std::int64_t tokens = 0;
};

// Checks that all workers end with the same weights; returns the result of one.
TrainingResult train_steps(const std::vector<std::vector<HostBatch>>& steps, GradientSum sum,
                           int workers) {
  std::vector<TrainingResult> results(static_cast<std::size_t>(workers));
  ThreadGroup::run(workers, [&](Communicator& communicator) {
    CpuContext context({.threads = 1});
    TransformerConfig config = small_config();
    config.dropout = config.attention_dropout = 0.2f;
    const auto model = make_small<Transformer>(context, config, {.gradients = true});
    const TranslationObjective objective(*model, context, kTokens, 0.1);
    Learner learner(*model, objective, {.adam = {.max_norm = 1}, .sum = sum}, communicator);
    TrainingResult& result = results[static_cast<std::size_t>(communicator.rank())];
    std::uint64_t step = 0;
    for (const std::vector<HostBatch>& batches : steps) {
      const StepReport report = learner.step(batches, {.seed = 1, .step = ++step}, 1e-3);
      EXPECT_TRUE(report.finite);
      result.losses.push_back(report.loss);
      result.norms.push_back(report.gradient_norm);
      result.tokens += report.target_tokens;
    }
    result.weights = to_host<float>(model->parameters().weights());
  });
  for (const TrainingResult& result : results)
    EXPECT_TRUE(same_bits(result.weights, results[0].weights));
  return results[0];
}

TEST(Workers, ATreeSumGivesTheSameBitsForAnyNumberOfWorkers) {
  for (const int micro_batches : {4, 12}) {
    const auto steps = make_steps(3, micro_batches);
    const TrainingResult single = train_steps(steps, GradientSum::tree, 1);
    for (const int workers : {2, 4}) {
      SCOPED_TRACE(workers);
      const TrainingResult several = train_steps(steps, GradientSum::tree, workers);
      EXPECT_TRUE(same_bits(several.weights, single.weights));
      EXPECT_EQ(several.losses, single.losses);
      EXPECT_EQ(several.norms, single.norms);
      EXPECT_EQ(several.tokens, single.tokens);
    }
  }
}

TEST(Workers, TreeAndSequentialSumsAgreeForOneMicroBatch) {
  const auto steps = make_steps(3, 1);
  EXPECT_TRUE(same_bits(train_steps(steps, GradientSum::tree, 1).weights,
                        train_steps(steps, GradientSum::sequential, 1).weights));
}

TEST(Workers, SequentialSumsDifferOnlyByRounding) {
  const auto steps = make_steps(1, 6);
  const TrainingResult single = train_steps(steps, GradientSum::sequential, 1);
  const TrainingResult several = train_steps(steps, GradientSum::sequential, 3);
  EXPECT_EQ(several.losses, single.losses);
  EXPECT_NEAR(several.norms[0], single.norms[0], 1e-6);
  EXPECT_EQ(several.tokens, single.tokens);
}

TEST(Workers, MicroBatchesMustDivideEqually) {
  check_worker_count(12, GradientSum::tree, 4);
  check_worker_count(12, GradientSum::sequential, 3);
  EXPECT_EQ(error_of([] { check_worker_count(6, GradientSum::sequential, 4); }),
            "training.accumulate is 6, but 4 workers need a multiple of 4: each takes the same "
            "number of a step's micro-batches.");
  EXPECT_EQ(error_of([] { check_worker_count(6, GradientSum::tree, 3); }),
            "training.gradient_sum: tree needs 1, 2, 4, 8, ... workers, not 3.");
}

// A run with `workers` workers that validates, writes checkpoints, and is stopped after each of the
// steps `stops` and resumed. Only the leader has a run's folder. Returns the weights.
std::vector<float> train_with_workers(const std::filesystem::path& folder,
                                      const TrainConfig& config, int workers,
                                      const std::vector<std::int64_t>& stops) {
  std::vector<float> weights;
  for (const std::int64_t stop_after : stops) {
    ThreadGroup::run(workers, [&](Communicator& communicator) {
      const std::filesystem::path worker_folder = folder / std::to_string(communicator.rank());
      std::filesystem::create_directories(worker_folder);
      const StartMode mode = stop_after == stops.front() ? StartMode::fresh : StartMode::resume;
      TinyRun run(worker_folder, mode, config, ContextOptions{.threads = 1}, &communicator);
      TrainerHooks hooks;
      hooks.validate = [&] {
        EXPECT_TRUE(communicator.is_leader());
        return ValidationScores{.loss = 3};
      };
      // Only the last worker receives the request to stop.
      std::atomic<bool> stop = false;
      hooks.stop = &stop;
      hooks.before_step = [&](std::int64_t step) {
        stop = step == stop_after && communicator.rank() == workers - 1;
      };
      const TrainingEnd end = run.train(hooks);
      EXPECT_EQ(end, stop_after == stops.back() ? TrainingEnd::finished : TrainingEnd::interrupted);
      EXPECT_EQ(run.state().step, stop_after);
      EXPECT_EQ(run.state().best.size(), 2u);
      EXPECT_EQ(std::filesystem::exists(worker_folder / "checkpoints"), communicator.is_leader());
      if (communicator.is_leader()) weights = run.weights();
    });
  }
  return weights;
}

TEST(Workers, SeveralTrainTheSameModelAsOne) {
  TrainConfig config = tiny_config();
  config.training.accumulate = 4;
  config.training.gradient_sum = GradientSum::tree;
  config.validation = {.every = 2, .metric = ValidationMetric::loss};
  const TemporaryFolder folder;
  const std::vector<float> single = train_with_workers(folder / "1", config, 1, {12});
  EXPECT_TRUE(same_bits(train_with_workers(folder / "2", config, 2, {12}), single));
  EXPECT_TRUE(same_bits(train_with_workers(folder / "4", config, 4, {5, 12}), single));
  EXPECT_EQ(timeless_log(folder / "1/0"), timeless_log(folder / "4/0"));
  for (const char* name : {"checkpoints/step-12/model.safetensors", "model.safetensors"}) {
    EXPECT_EQ(content(folder / "1/0" / name), content(folder / "2/0" / name));
    EXPECT_EQ(content(folder / "1/0" / name), content(folder / "4/0" / name));
  }
}

}  // namespace
}  // namespace nunchi::testing
