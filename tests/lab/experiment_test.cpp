#include "nunchi/lab/experiment.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nunchi/lab/tasks.h"

namespace nunchi::testing {
namespace {

using namespace lab;

TEST(LabExperiment, TrainingIsAFunctionOfTheSeed) {
  const auto losses = [](std::uint64_t seed) {
    CpuContext context({.threads = 1});
    Experiment experiment(lab::Options{.context = context, .seed = seed}, small_transformer(10, 16),
                          Task::translate);
    return experiment.train({.steps = 5, .batch = 4}, copying(2, 4, 10), {});
  };
  EXPECT_EQ(losses(1), losses(1));
  EXPECT_NE(losses(1), losses(2));
}

TEST(LabExperiment, LearnsEachKindOfTask) {
  CpuContext context({.threads = 1});
  const lab::Options options{.context = context};
  Experiment copy(options, small_transformer(4, 32), Task::translate);
  const std::vector<double> translated =
      copy.train({.steps = 60, .batch = 16}, copying(1, 2, 4), {});
  EXPECT_LT(translated.back(), 0.7 * translated.front());

  // A text in which every word is followed by the next one.
  const ExampleMaker counting = [](Draws& draws) {
    Tokens text;
    const std::int32_t first = draws.below(6);
    for (std::int32_t i = 0; i < 6; ++i) text.push_back(kFirstWord + (first + i) % 6);
    return Example{.target = text};
  };
  Experiment count(options, small_text_model<GptConfig>(6, 32, 1), Task::text);
  count.train({.steps = 80, .batch = 16, .peak = 5e-3}, counting, {});
  const std::vector<Example> test = {{.target = {kFirstWord + 2, kFirstWord + 3, kFirstWord + 4}}};
  EXPECT_LT(count.loss(test), 0.5);
  EXPECT_EQ(count.generate(test, {.max_length = 1}, 2)[0], Tokens{kFirstWord + 4});

  // The label repeats the word after the position.
  const ExampleMaker next = [](Draws& draws) {
    const Tokens words = random_words(draws, 2, 3);
    return Example{.target = words, .positions = {0}, .labels = {words[1]}};
  };
  Experiment fill(options, small_text_model<BertConfig>(3, 32, 1), Task::fill);
  fill.train({.steps = 120, .batch = 16, .peak = 5e-3}, next, {});
  const std::vector<Example> tests = make_examples(options, next, 20);
  EXPECT_GE(label_share(tests, fill.fill(tests)), 0.9);
}

TEST(LabExperiment, SharesCountExactTargetsTokensAndLabels) {
  const std::vector<Example> examples = {{.target = {3, 4}, .labels = {5}},
                                         {.target = {6, 7, 8}, .labels = {9}}};
  EXPECT_EQ(exact_share(examples, std::vector<Tokens>{{3, 4}, {6, 7}}), 0.5);
  EXPECT_EQ(token_share(examples, std::vector<Tokens>{{3, 5}, {6, 7}}), 0.6);
  EXPECT_EQ(label_share(examples, std::vector<Tokens>{{5}, {8}}), 0.5);
}

TEST(LabExperiment, WeightsOfATraceSumToOne) {
  CpuContext context({.threads = 1});
  const lab::Options options{.context = context};
  Experiment experiment(options, small_transformer(10, 16), Task::translate);
  const std::vector<Example> examples = make_examples(options, copying(2, 5, 10), 3);
  const Trace trace = experiment.trace(examples, {Tap::attention_weights});
  const TapRecord& record = *trace.find(Tap::attention_weights, "decoder", 1, "cross_attention");
  for (std::size_t s = 0; s < examples.size(); ++s) {
    for (const int head : {kMeanOfHeads, 0, 3}) {
      const Weights weights = weights_of(record, s, head);
      EXPECT_EQ(weights.queries, std::ssize(examples[s].target) + 1);
      EXPECT_EQ(weights.keys, std::ssize(examples[s].source) + 1);
      for (std::int64_t q = 0; q < weights.queries; ++q) {
        double sum = 0;
        for (std::int64_t k = 0; k < weights.keys; ++k) sum += weights.at(q, k);
        EXPECT_NEAR(sum, 1, 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace nunchi::testing
