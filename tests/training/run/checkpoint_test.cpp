#include "nunchi/training/run/checkpoint.h"

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

#include "nunchi/base/error.h"
#include "nunchi/models/format/folder.h"
#include "nunchi/training/run/average.h"
#include "tests/files.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

namespace fs = std::filesystem;

// A model, an optimiser and a state, all with non-trivial numbers.
struct SomeRun {
  explicit SomeRun(std::uint64_t seed, const TransformerConfig& config = small_config())
      : context({.threads = 1}),
        model(make_small<Transformer>(context, config, {.gradients = true})),
        optimizer(model->parameters(), {.max_norm = 1}) {
    nn::Parameters& parameters = model->parameters();
    for (int step = 0; step < 3; ++step) {
      // Parameter by parameter, since the gaps between them must stay zero.
      for (const nn::ParameterEntry& entry : parameters.entries()) {
        const auto offset = static_cast<std::uint64_t>(entry.offset);
        copy_from_host<float>(random_values<float>(entry.shape.elements(), seed + step + offset),
                              entry.variable.gradient());
      }
      optimizer.step({.learning_rate = 1e-2});
    }
  }
  std::vector<float> weights() const { return to_host<float>(model->parameters().weights()); }
  void save(const fs::path& folder, std::int64_t step) const {
    const auto write_companions = [](const fs::path& temporary) {
      write_text(temporary / "config.yaml", "seed: 1\n");
      write_text(temporary / "tokenizer.spm", "pieces");
    };
    TrainerState saved_state = state;
    saved_state.step = step;
    write_checkpoint(folder, {*model, optimizer, saved_state, write_companions});
  }

  CpuContext context;
  std::unique_ptr<Transformer> model;
  AdamOptimizer optimizer;
  TrainerState state{.epoch = 2,
                     .batch = 17,
                     .order_digest = "fedc",
                     .seed = INT64_MAX,
                     .config_digest = "0123abcd",
                     .last_validation = 5,
                     .validations_without_gain = 1,
                     .best = {{5, 30.25}, {3, 1.0 / 3}},
                     .elapsed_seconds = 12.5,
                     .skipped_steps = 2,
                     .skipped_in_a_row = 1,
                     .window_loss = 1e-7 / 3,
                     .window_tokens = 4096};
};

TEST(Checkpoint, RestoresEverythingBitForBit) {
  const TemporaryFolder folder;
  SomeRun saved(1);
  saved.save(folder.path(), 7);
  SomeRun other(100);
  TrainerState expected = saved.state;
  expected.step = 7;
  EXPECT_EQ(load_checkpoint(folder / "step-7", *other.model, other.optimizer), expected);
  EXPECT_TRUE(same_bits(other.weights(), saved.weights()));
  EXPECT_EQ(other.optimizer.steps(), 3);
  for (const auto moment : {&AdamOptimizer::first_moment, &AdamOptimizer::second_moment}) {
    EXPECT_TRUE(same_bits(to_host<float>((other.optimizer.*moment)()),
                          to_host<float>((saved.optimizer.*moment)())));
  }
  EXPECT_EQ(content(folder / "step-7/config.yaml"), "seed: 1\n");
}

TEST(Checkpoint, IsAModelFolder) {
  const TemporaryFolder folder;
  const SomeRun saved(1);
  saved.save(folder.path(), 7);
  CpuContext context;
  const auto model = load_model(folder / "step-7", context);
  EXPECT_TRUE(same_bits(to_host<float>(model->parameters().weights()), saved.weights()));
}

TEST(Checkpoint, IsRejectedBeforeAnythingChangesIfItDoesNotFitTheModel) {
  const TemporaryFolder folder;
  SomeRun(1).save(folder.path(), 7);
  TransformerConfig wider = small_config();
  wider.feed_forward = 80;
  TransformerConfig deeper = small_config();
  deeper.decoder_layers = 3;
  TransformerConfig shallower = small_config();
  shallower.decoder_layers = 1;
  for (const TransformerConfig& config : {wider, deeper, shallower}) {
    SomeRun other(5, config);
    const std::vector<float> before = other.weights();
    const std::string message =
        error_of([&] { load_checkpoint(folder / "step-7", *other.model, other.optimizer); });
    EXPECT_TRUE(says(message, "does not fit the model")) << message;
    EXPECT_TRUE(same_bits(other.weights(), before));
  }
  SomeRun other(5, wider);
  const std::string message =
      error_of([&] { load_checkpoint(folder / "step-7", *other.model, other.optimizer); });
  EXPECT_TRUE(says(message, "has shape [72, 40], but the model needs [80, 40]") ||
              says(message, "has shape [40, 72], but the model needs [40, 80]"))
      << message;
}

TEST(Checkpoint, ErrorsNameTheDamagedFile) {
  const TemporaryFolder folder;
  SomeRun run(1);
  run.save(folder.path(), 7);
  const std::vector<float> before = run.weights();
  const auto message_with = [&](const char* name, const std::string& text) {
    const std::string original = content(folder / "step-7" / name);
    write_text(folder / "step-7" / name, text);
    const std::string message =
        error_of([&] { load_checkpoint(folder / "step-7", *run.model, run.optimizer); });
    write_text(folder / "step-7" / name, original);
    EXPECT_TRUE(says(message, name)) << message;
    EXPECT_TRUE(same_bits(run.weights(), before));
    return message;
  };
  for (const char* text : {"", "{}", "[]", "{\"step\": \"x\"}", "{"}) {
    message_with("trainer.json", text);
  }
  std::string negative = content(folder / "step-7/trainer.json");
  negative.replace(negative.find("\"batch\": 17"), 11, "\"batch\": -7");
  message_with("trainer.json", negative);
  message_with("optimizer.safetensors", "short");
  message_with("model.safetensors", content(folder / "step-7/model.safetensors").substr(0, 5000));
}

TEST(Checkpoint, WritingAStepAgainReplacesIt) {
  const TemporaryFolder folder;
  SomeRun(1).save(folder.path(), 7);
  const SomeRun second(50);
  second.save(folder.path(), 7);
  SomeRun loaded(9);
  load_checkpoint(folder / "step-7", *loaded.model, loaded.optimizer);
  EXPECT_TRUE(same_bits(loaded.weights(), second.weights()));
  EXPECT_EQ(folder.entry_count(), 1);
}

TEST(Checkpoint, OldOnesAreRemovedExceptTheLastAndTheBest) {
  const TemporaryFolder folder;
  for (const int step : {5, 10, 100, 20, 30}) {
    fs::create_directory(folder / ("step-" + std::to_string(step)));
  }
  fs::create_directory(folder / "step-7b");
  fs::create_directory(folder / "other");
  EXPECT_EQ(checkpoint_steps(folder.path()), (std::vector<std::int64_t>{5, 10, 20, 30, 100}));
  const std::vector<StepScore> best = {{10, 1.0}};
  remove_old_checkpoints(folder.path(), 2, best);
  EXPECT_EQ(checkpoint_steps(folder.path()), (std::vector<std::int64_t>{10, 30, 100}));
  EXPECT_TRUE(fs::exists(folder / "step-7b") && fs::exists(folder / "other"));
  EXPECT_EQ(folder.entry_count(), 5);
}

// A limit on the file size simulates a full disk: both make a write fail in the middle of the data.
TEST(Checkpoint, AFullDiskLeavesOnlyTheEarlierCheckpoint) {
  const TemporaryFolder folder;
  SomeRun run(1);
  run.save(folder.path(), 7);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100'000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = error_of([&] { run.save(folder.path(), 8); });
  const std::string second_message = error_of([&] { run.save(folder.path(), 7); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, previous);
  EXPECT_TRUE(says(message, "cannot write") && says(message, "File too large")) << message;
  EXPECT_EQ(folder.entry_count(), 1);
  load_checkpoint(folder / "step-7", *run.model, run.optimizer);
}

TEST(Checkpoint, AReadOnlyFolderIsAnError) {
  constexpr uid_t kUnprivilegedUser = 65534;
  const TemporaryFolder folder;
  const SomeRun run(1);
  fs::permissions(folder.path(), fs::perms(0555));
  // Permission bits do not restrict root.
  const uid_t before = ::geteuid();
  if (before == 0 && ::seteuid(kUnprivilegedUser) != 0) GTEST_SKIP() << "cannot stop being root";
  const std::string message = error_of([&] { run.save(folder.path(), 8); });
  ASSERT_EQ(::seteuid(before), 0);
  fs::permissions(folder.path(), fs::perms(0755));
  EXPECT_TRUE(says(message, "step-8: Permission denied")) << message;
  EXPECT_TRUE(folder.empty());
}

TEST(Average, IsTheMeanOfTheWeights) {
  const TemporaryFolder folder;
  const SomeRun a(1), b(40), c(90);
  a.save(folder.path(), 1);
  b.save(folder.path(), 2);
  c.save(folder.path(), 3);
  const std::vector<fs::path> all = {folder / "step-1", folder / "step-2", folder / "step-3"};
  ModelMean(all).save(folder / "mean");
  CpuContext context;
  const auto mean = load_model(folder / "mean", context);
  const std::vector<float> x = a.weights(), y = b.weights(), z = c.weights(),
                           m = to_host<float>(mean->parameters().weights());
  for (std::size_t i = 0; i < m.size(); ++i) {
    const double sum = static_cast<double>(x[i]) + static_cast<double>(y[i]) + z[i];
    ASSERT_EQ(m[i], static_cast<float>(sum / 3)) << i;
  }
  EXPECT_EQ(content(folder / "mean/tokenizer.spm"), "pieces");
  EXPECT_FALSE(fs::exists(folder / "mean/trainer.json"));
}

TEST(Average, OfOneModelIsTheSameBitForBit) {
  const TemporaryFolder folder;
  const SomeRun a(1);
  a.save(folder.path(), 1);
  const std::vector<fs::path> one = {folder / "step-1"};
  ModelMean(one).save(folder / "mean");
  CpuContext context;
  EXPECT_TRUE(same_bits(
      to_host<float>(load_model(folder / "mean", context)->parameters().weights()), a.weights()));
}

TEST(Average, OfDifferentModelsIsAnErrorAndWritesNothing) {
  const TemporaryFolder folder;
  TransformerConfig wider = small_config();
  wider.feed_forward = 80;
  SomeRun(1).save(folder.path(), 1);
  SomeRun(1, wider).save(folder.path(), 2);
  SomeRun(1).save(folder.path(), 3);
  write_text(folder / "step-3/tokenizer.spm", "other pieces");
  // The same tensors, but another function of them.
  TransformerConfig rotary = small_config(), other_epsilon = small_config();
  rotary.position = nn::PositionKind::rotary;
  other_epsilon.norm_epsilon = 1e-3;
  SomeRun(1, rotary).save(folder.path(), 4);
  SomeRun(1, other_epsilon).save(folder.path(), 5);
  const auto message_with = [&](const char* other) {
    const std::vector<fs::path> both = {folder / "step-1", folder / other};
    return error_of([&] { ModelMean(both).save(folder / "mean"); });
  };
  EXPECT_NE(message_with("step-4").find(
                "step-1': its 'position' is rotary, but the other's is sinusoidal"),
            std::string::npos)
      << message_with("step-4");
  EXPECT_NE(message_with("step-5").find("its 'norm_epsilon' is 0.001"), std::string::npos)
      << message_with("step-5");
  for (const char* other : {"step-2", "step-3", "nothing"}) {
    const std::vector<fs::path> both = {folder / "step-1", folder / other};
    EXPECT_THROW(ModelMean(both).save(folder / "mean"), Error) << other;
  }
  EXPECT_THROW(ModelMean({}), Error);
  EXPECT_FALSE(fs::exists(folder / "mean"));
}

}  // namespace
}  // namespace nunchi::testing
