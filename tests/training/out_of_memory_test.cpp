// Steps whose micro-batches do not fit into memory are computed in parts.
#include "nunchi/base/out_of_memory.h"
#include "nunchi/autograd/tape.h"
#include "nunchi/data/split_batch.h"
#include "nunchi/training/batch_search.h"
#include "nunchi/training/learner.h"
#include "nunchi/training/objectives/translation.h"
#include "tests/training/resumed_run.h"

namespace nunchi::testing {
namespace {

using StartMode = RunFolder::StartMode;

HostBatch batch_of(std::span<const Tokens> sentences) {
  HostBatch batch;
  std::vector<Tokens> sources;
  for (const Tokens& sentence : sentences) {
    batch.targets.push_back(sentence);
    sources.push_back(sentence);
    sources.back().push_back(kTokens.end);
    batch.pairs.push_back(std::ssize(batch.pairs));
    batch.target_tokens += std::ssize(sentence) + 1;
  }
  batch.sources = std::move(sources);
  return batch;
}

// An objective on a device with memory for `max_rows` rows: larger batches fail in the forward pass
// or, after some gradients were added, in the backward pass.
class LimitedMemory final : public Objective {
 public:
  LimitedMemory(const Objective& inner, ContextBase& context, std::int64_t max_rows,
                Tape::Pass pass)
      : inner_(inner), context_(context), max_rows_(max_rows), pass_(pass) {}

  ObjectiveLoss loss(const HostBatch& batch, std::int32_t first_sentence) const override {
    calls.push_back(batch_rows(batch));
    if (batch_rows(batch) > max_rows_ && context_.tape() != nullptr) {
      context_.tape()->set_observer(
          [this](Tape::Pass pass, std::size_t number, const char*, const Tensor&) {
            if (pass == pass_ && number == 9) throw OutOfMemory("out of memory: none left.");
          });
    }
    return inner_.loss(batch, first_sentence);
  }

  mutable std::vector<std::int64_t> calls;  // rows of each batch

 private:
  const Objective& inner_;
  ContextBase& context_;
  std::int64_t max_rows_;
  Tape::Pass pass_;
};

struct Learning {
  std::vector<float> weights;
  StepReport report;
  std::int64_t max_rows = 0;
  std::string notes;
};

// Two steps of the same batches, in a memory of `max_rows` rows.
Learning learn(const std::vector<HostBatch>& batches, std::int64_t max_rows,
               Tape::Pass pass = Tape::Pass::forward, GradientSum sum = GradientSum::sequential) {
  CpuContext context({.threads = 1});
  TransformerConfig config = small_config();
  config.dropout = config.attention_dropout = 0.2f;
  const auto model = make_small<Transformer>(context, config, {.gradients = true});
  const TranslationObjective inner(*model, context, kTokens, 0.1);
  const LimitedMemory objective(inner, context, max_rows, pass);
  SingleProcess single_process;
  Learning result;
  Learner learner(*model, objective,
                  {.adam = {.epsilon = 1e-3, .max_norm = 1},
                   .sum = sum,
                   .note = [&](const std::string& message) { result.notes += message + "\n"; }},
                  single_process);
  for (const std::uint64_t step : {1, 2}) {
    result.report = learner.step(batches, {.seed = 1, .step = step}, 1e-3);
  }
  result.weights = to_host<float>(model->parameters().weights());
  result.max_rows = learner.max_rows();
  return result;
}

const std::vector<Tokens> kSentences = sentences_of({5, 4, 6, 3, 7, 4, 5, 5}, 37, 1);
constexpr std::int64_t kNoLimit = 1 << 20;

// The parts get the same random draws as the whole, and their gradients are divided once by the
// tokens of the whole step: the result is that of a step with smaller micro-batches, bit for bit.
TEST(OutOfMemory, AStepInPartsIsTheStepOfSmallerMicroBatches) {
  const std::vector<HostBatch> whole = {batch_of(kSentences)};
  const std::vector<HostBatch> halves = halves_of(whole[0]);
  const Learning expected = learn(halves, kNoLimit);
  EXPECT_EQ(expected.max_rows, 0);
  EXPECT_TRUE(expected.notes.empty());
  const std::int64_t larger_half = std::max(batch_rows(halves[0]), batch_rows(halves[1]));
  for (const Tape::Pass pass : {Tape::Pass::forward, Tape::Pass::backward}) {
    for (const GradientSum sum : {GradientSum::sequential, GradientSum::tree}) {
      const Learning found = learn(whole, larger_half, pass, sum);
      EXPECT_TRUE(same_bits(found.weights, expected.weights));
      EXPECT_EQ(found.report.target_tokens, expected.report.target_tokens);
      EXPECT_EQ(found.report.tokens_processed, expected.report.tokens_processed);
      EXPECT_NEAR(found.report.loss, expected.report.loss, 1e-9);
      EXPECT_EQ(found.max_rows, larger_half);
      EXPECT_EQ(std::count(found.notes.begin(), found.notes.end(), '\n'), 1)
          << "the second step is computed in parts at once: " << found.notes;
    }
  }
  const Learning unlimited = learn(whole, kNoLimit);
  EXPECT_LT(largest_difference(unlimited.weights, expected.weights), 1e-6);
}

TEST(OutOfMemory, PartsAreHalvedUntilTheyFit) {
  const std::vector<HostBatch> whole = {batch_of(std::span(kSentences).first(4)),
                                        batch_of(std::span(kSentences).last(4))};
  const Learning expected = learn(whole, kNoLimit);
  const Learning found = learn(whole, 15, Tape::Pass::backward);  // at most one sentence
  EXPECT_LT(largest_difference(found.weights, expected.weights), 1e-6);
  EXPECT_EQ(found.report.target_tokens, expected.report.target_tokens);
  EXPECT_TRUE(says(found.notes,
                   "a micro-batch of 4 sentences and 40 tokens, source and target together, does "
                   "not fit into memory (out of memory: none left); from now on micro-batches of "
                   "more than 20 tokens are computed in parts. A lower training.batch_tokens"))
      << found.notes;
}

TEST(OutOfMemory, ASentenceThatDoesNotFitIsOneClearSentence) {
  const std::string message = error_of([] { learn({batch_of(kSentences)}, 14); });
  EXPECT_EQ(message,
            "an example of 15 tokens, source and target together, does not fit into memory (out of "
            "memory: none left). Lower data.max_length, data.window or the sizes of the model.");
}

TEST(OutOfMemory, TheArenaThrowsIt) {
  CpuContext context({.threads = 1});
  EXPECT_THROW(context.arena().allocate(std::size_t{1} << 45), OutOfMemory);
}

// A run keeps the limit, so that a resumed run computes the same parts.
TEST(OutOfMemory, TheStateOfARunHasTheLimit) {
  TrainerState state{.step = 3, .max_rows = 1234};
  EXPECT_EQ(trainer_state_from_json(to_json(state), "here"), state);
  const TemporaryFolder folder;
  std::atomic<bool> stop = false;
  {
    TinyRun run(folder.path(), StartMode::fresh, tiny_config());
    run.train(stopping_after(stop, 5));
  }
  const std::filesystem::path file = folder / "checkpoints/step-5/trainer.json";
  std::string text = content(file);
  text.replace(text.find("\"max_rows\": 0"), 13, "\"max_rows\": 9");
  write_text(file, text);
  TinyRun run(folder.path(), StartMode::resume, tiny_config());
  run.train();
  EXPECT_EQ(run.state().max_rows, 9);
}

// Finds the size for a memory of `max_rows` rows.
std::int64_t found_for(std::int64_t max_rows) {
  const TemporaryFolder folder;
  TinyRun run(folder.path(), StartMode::fresh, tiny_config());
  const PairStore pairs = tiny_pairs(folder / "many", 6000);
  const LimitedMemory objective(run.objective(), run.context(), max_rows, Tape::Pass::forward);
  const TrainingOptions training = tiny_config().training;
  const std::vector<float> before = run.weights();
  const std::int64_t found = find_batch_tokens(
      {run.model(), objective, training, [&](std::int64_t tokens) {
         return std::make_unique<BatchOrder>(std::vector<WeightedPairs>{{&pairs, 1}},
                                             BatchOptions{.batch_tokens = tokens});
       }});
  EXPECT_TRUE(same_bits(run.weights(), before));
  for (const float value : to_host<float>(run.model().parameters().gradients())) {
    EXPECT_EQ(value, 0);
    if (value != 0) break;
  }
  EXPECT_LE(objective.calls.size(), 10u) << "the search is bounded";
  return found;
}

TEST(BatchSearch, FindsAboutTheLargestSizeThatFits) {
  // A pair of tiny_pairs has n source and n target tokens to predict.
  const std::int64_t found = found_for(3000);
  EXPECT_LE(found, 1500);
  EXPECT_GE(found, 1000);
  EXPECT_EQ(found % 64, 0);
  EXPECT_EQ(found_for(kNoLimit), 24576);
  EXPECT_EQ(found_for(200), 64);
  EXPECT_TRUE(says(error_of([] { found_for(20); }), "not even micro-batches of 64 target tokens"));
}

}  // namespace
}  // namespace nunchi::testing
