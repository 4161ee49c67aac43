// One training step: micro-batches, random keys, and results that are not finite.
#include "nunchi/training/learner.h"

#include "nunchi/autograd/tape.h"
#include "nunchi/training/objectives/translation.h"
#include "tests/training/tiny_run.h"

namespace nunchi::testing {
namespace {

HostBatch batch_of(const std::vector<Tokens>& sentences) {
  HostBatch batch;
  for (const Tokens& sentence : sentences) {
    batch.targets.push_back(sentence);
    std::vector<Tokens>& sources = std::get<std::vector<Tokens>>(batch.sources);
    sources.push_back(sentence);
    sources.back().push_back(kTokens.end);
    batch.pairs.push_back(static_cast<std::int64_t>(batch.pairs.size()));
    batch.target_tokens += static_cast<std::int64_t>(sentence.size()) + 1;
  }
  return batch;
}

struct StepResult {
  std::vector<float> weights;
  StepReport report;
};

StepResult take_step(const std::vector<HostBatch>& batches, std::uint64_t step) {
  CpuContext context({.threads = 1});
  TransformerConfig config = small_config();
  config.dropout = config.attention_dropout = 0.2f;
  const auto model = make_small<Transformer>(context, config, {.gradients = true});
  const TranslationObjective objective(*model, context, kTokens, 0.1);
  SingleProcess single_process;
  Learner learner(*model, objective, {.adam = {.epsilon = 1e-3, .max_norm = 1}}, single_process);
  const StepReport report = learner.step(batches, {.seed = 1, .step = step}, 1e-3);
  return {to_host<float>(model->parameters().weights()), report};
}

// Random draws depend on a sentence's index in the step, so that the division of a step into
// micro-batches changes only the order of the additions.
TEST(Learner, MicroBatchesGiveTheSameStepAsOneBatch) {
  const std::vector<Tokens> sentences = sentences_of({5, 1, 9, 3, 7, 4}, 37, 1);
  const std::vector<Tokens> front(sentences.begin(), sentences.begin() + 2);
  const std::vector<Tokens> back(sentences.begin() + 2, sentences.end());
  const StepResult whole = take_step({batch_of(sentences)}, 1);
  const StepResult parts = take_step({batch_of(front), batch_of(back)}, 1);
  EXPECT_EQ(whole.report.target_tokens, 35);
  EXPECT_EQ(parts.report.target_tokens, 35);
  EXPECT_NEAR(whole.report.loss, parts.report.loss, 1e-4);
  EXPECT_NEAR(whole.report.gradient_norm, parts.report.gradient_norm, 1e-6);
  EXPECT_LT(largest_difference(whole.weights, parts.weights), 1e-6);
}

TEST(Learner, DropoutMasksDependOnTheStep) {
  const std::vector<HostBatch> batches = {batch_of(sentences_of({5, 4}, 37, 1))};
  EXPECT_TRUE(same_bits(take_step(batches, 1).weights, take_step(batches, 1).weights));
  EXPECT_FALSE(same_bits(take_step(batches, 1).weights, take_step(batches, 2).weights));
}

// An objective with finite losses and infinite gradients.
class InfiniteGradients final : public Objective {
 public:
  InfiniteGradients(const Objective& inner, nn::Parameters& parameters)
      : inner_(inner), parameters_(parameters) {}
  ObjectiveLoss loss(const HostBatch& batch, std::int32_t first_sentence) const override {
    const ObjectiveLoss loss = inner_.loss(batch, first_sentence);
    fill(parameters_.gradients(), INFINITY);
    return loss;
  }

 private:
  const Objective& inner_;
  nn::Parameters& parameters_;
};

TEST(Learner, AStepWithInfiniteGradientsChangesNothing) {
  CpuContext context({.threads = 1});
  const auto model = make_small<Transformer>(context, small_config(), {.gradients = true});
  const TranslationObjective inner(*model, context, kTokens, 0.1);
  const InfiniteGradients objective(inner, model->parameters());
  SingleProcess single_process;
  Learner learner(*model, objective, {}, single_process);
  const std::vector<float> before = to_host<float>(model->parameters().weights());
  const std::vector<HostBatch> batches = {batch_of(sentences_of({5, 4}, 37, 1))};
  const StepReport report = learner.step(batches, {.seed = 1, .step = 1}, 1e-3);
  EXPECT_TRUE(std::isfinite(report.loss));
  EXPECT_FALSE(report.finite);
  EXPECT_EQ(learner.optimizer().steps(), 0);
  EXPECT_TRUE(same_bits(to_host<float>(model->parameters().weights()), before));
  const std::string found = learner.describe_first_non_finite(batches, {.seed = 1, .step = 1});
  EXPECT_NE(found.find("of the backward pass"), std::string::npos) << found;
  for (const float value : to_host<float>(model->parameters().gradients())) ASSERT_EQ(value, 0);
}

// An objective that writes a NaN into the result of one operation.
class NanInjector final : public Objective {
 public:
  NanInjector(const Objective& inner, ContextBase& context) : inner_(inner), context_(context) {}

  ObjectiveLoss loss(const HostBatch& batch, std::int32_t first_sentence) const override {
    bool done = false;
    context_.tape()->set_observer([this, done](Tape::Pass current_pass,
                                               std::size_t operation_number, const char* operation,
                                               const Tensor& result) mutable {
      if (current_pass == Tape::Pass::forward) {
        names.resize(std::max(names.size(), operation_number));
        names[operation_number - 1] = operation;
      }
      if (done || current_pass != pass || operation_number != nan_operation) return;
      // A tensor that is not contiguous is a slice of columns: only its first row is filled.
      const Tensor first = result.contiguous() ? result.flat_slice(0, {1}) : result.rows(0, 1);
      fill(first, NAN);
      done = true;
    });
    return inner_.loss(batch, first_sentence);
  }

  // The operation, counted from 1, whose result gets the NaN; 0: none.
  std::size_t nan_operation = 0;
  Tape::Pass pass = Tape::Pass::forward;
  mutable std::vector<std::string> names;  // names of all operations

 private:
  const Objective& inner_;
  ContextBase& context_;
};

TEST(Learner, ANanFromAnyOperationIsDetectedAndNamed) {
  CpuContext context({.threads = 1});
  context.arena().poison();
  TransformerConfig config = small_config();
  config.activation = ActivationKind::swiglu;
  config.norm_placement = nn::NormPlacement::pre;
  config.position = nn::PositionKind::learned;
  config.dropout = config.attention_dropout = config.activation_dropout = 0.1f;
  const auto model = make_small<Transformer>(context, config, {.gradients = true});
  const TranslationObjective inner(*model, context, kTokens, 0.1);
  NanInjector injector(inner, context);
  SingleProcess single_process;
  Learner learner(*model, injector, {.adam = {.max_norm = 1}}, single_process);
  const std::vector<HostBatch> batches = {batch_of(sentences_of({5, 4}, 37, 1))};
  const RandomKey key{.seed = 1, .step = 1};
  EXPECT_TRUE(learner.step(batches, key, 1e-3).finite);
  const std::vector<std::string> names = injector.names;
  EXPECT_GT(names.size(), 30u);
  const std::vector<float> before = to_host<float>(model->parameters().weights());
  for (const Tape::Pass pass : {Tape::Pass::forward, Tape::Pass::backward}) {
    injector.pass = pass;
    for (std::size_t i = 1; i <= names.size(); ++i) {
      injector.nan_operation = i;
      const std::string where = "(operation " + std::to_string(i) + " of the " +
                                (pass == Tape::Pass::forward ? "forward" : "backward") + " pass)";
      EXPECT_FALSE(learner.step(batches, key, 1e-3).finite) << names[i - 1] << " " << where;
      EXPECT_TRUE(same_bits(to_host<float>(model->parameters().weights()), before));
      const std::string found = learner.describe_first_non_finite(batches, key);
      EXPECT_NE(found.find(names[i - 1] + " " + where), std::string::npos) << found;
    }
  }
  injector.nan_operation = 0;
  EXPECT_TRUE(learner.step(batches, key, 1e-3).finite);
}

TEST(TranslationObjective, SmoothsLabelsOnlyInTrainingMode) {
  CpuContext context({.threads = 1});
  const auto model = make_small<Transformer>(context, small_config(), {.gradients = true});
  const TranslationObjective smooth(*model, context, kTokens, 0.3),
      plain(*model, context, kTokens, 0);
  const HostBatch batch = batch_of(sentences_of({5, 4}, 37, 1));
  const auto value = [&](const Objective& objective) {
    return to_host<double>(objective.loss(batch, 0).total.value())[0];
  };
  EXPECT_EQ(value(smooth), value(plain));
  const ModeScope scope(context, Mode::training);
  EXPECT_NE(value(smooth), value(plain));
}

}  // namespace
}  // namespace nunchi::testing
