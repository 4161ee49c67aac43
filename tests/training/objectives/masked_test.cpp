// Masked language modelling: which tokens are masked, and learning to predict them.
#include "nunchi/training/objectives/masked.h"

#include "tests/training/tiny_run.h"

namespace nunchi::testing {
namespace {

constexpr std::int32_t kMask = 3;
constexpr std::int64_t kNoLimit = 1 << 20;

// The mask and, for each word, a piece that starts a word and one that continues it.
std::vector<std::string> pieces(int words) {
  std::vector<std::string> pieces = {"[MASK]"};
  for (int i = 0; i < words; ++i) {
    pieces.push_back("▁w" + std::to_string(i));
    pieces.push_back("x" + std::to_string(i));
  }
  return pieces;
}

Tokens text_of(std::int32_t length, std::uint64_t seed) {
  Tokens text = sentences_of({length}, 200, seed)[0];
  for (std::int32_t& token : text) token += kMask + 1;
  return text;
}

TEST(Masker, MasksTheGivenFractionAndAtLeastOneToken) {
  const PieceTokenizer tokenizer(pieces(100));
  for (const double fraction : {0.15, 0.5}) {
    const Masker masker(tokenizer, {.fraction = fraction});
    for (const std::int32_t length : {1, 2, 3, 10, 33, 100}) {
      const Tokens text = text_of(length, 1);
      const MaskedText masked = masker(text, kNoLimit, {{.seed = 1, .step = 2}, 5});
      EXPECT_EQ(masked.positions.size(),
                static_cast<std::size_t>(std::max(1L, std::lround(fraction * length))));
      ASSERT_EQ(masked.inputs.size(), text.size() + 2);
      EXPECT_EQ(masked.inputs.front(), 1);
      EXPECT_EQ(masked.inputs.back(), 2);
      Tokens restored = masked.inputs;
      for (std::size_t i = 0; i < masked.positions.size(); ++i) {
        if (i > 0) {
          EXPECT_LT(masked.positions[i - 1], masked.positions[i]);
        }
        restored[static_cast<std::size_t>(masked.positions[i])] = masked.labels[i];
      }
      EXPECT_EQ(restored, enclosed(text, kUsualSpecialTokens, kNoLimit))
          << "labels are the original tokens";
    }
  }
}

TEST(Masker, Masks80PercentReplaces10PercentAndChoosesPositionsUniformly) {
  const PieceTokenizer tokenizer(pieces(100));
  const Masker masker(tokenizer, {});
  constexpr std::int32_t kLength = 40;
  const Tokens text = text_of(kLength, 3);
  constexpr int kTimes = 5000;
  double masked_count = 0, kept = 0, replaced = 0;
  std::vector<int> count_at(kLength + 2, 0),
      drawn(static_cast<std::size_t>(tokenizer.vocabulary()), 0);
  for (std::uint32_t i = 0; i < kTimes; ++i) {
    const MaskedText masked = masker(text, kNoLimit, {{.seed = 9, .step = i}, i % 7});
    for (std::size_t m = 0; m < masked.positions.size(); ++m) {
      const std::int32_t input = masked.inputs[static_cast<std::size_t>(masked.positions[m])];
      ++count_at[static_cast<std::size_t>(masked.positions[m])];
      masked_count += input == kMask ? 1 : 0;
      kept += input == masked.labels[m] ? 1 : 0;
      if (input == kMask || input == masked.labels[m]) continue;
      ++replaced;
      ++drawn[static_cast<std::size_t>(input)];
    }
  }
  constexpr double kChosen = kTimes * 6;  // 15 % of 40 tokens, each time
  EXPECT_NEAR(masked_count / kChosen, 0.8, 0.01);
  EXPECT_NEAR(kept / kChosen, 0.1, 0.01);
  EXPECT_NEAR(replaced / kChosen, 0.1, 0.01);
  EXPECT_EQ(count_at.front() + count_at.back(), 0) << "<s> and </s> are never masked";
  for (std::size_t i = 1; i <= kLength; ++i) EXPECT_NEAR(count_at[i], kChosen / kLength, 120) << i;
  for (std::size_t id = 0; id <= kMask; ++id) EXPECT_EQ(drawn[id], 0) << id;
  EXPECT_GT(std::ranges::count_if(drawn, [](int times) { return times > 0; }), 190);
}

TEST(Masker, DependsOnSeedStepAndSentence) {
  const PieceTokenizer tokenizer(pieces(100));
  const Masker masker(tokenizer, {});
  const Tokens text = text_of(50, 3);
  const auto inputs = [&](const TextDraws& draws) { return masker(text, kNoLimit, draws).inputs; };
  const Tokens first = inputs({{.seed = 1, .step = 2}, 3});
  EXPECT_EQ(inputs({{.seed = 1, .step = 2}, 3}), first);
  EXPECT_NE(inputs({{.seed = 2, .step = 2}, 3}), first);
  EXPECT_NE(inputs({{.seed = 1, .step = 3}, 3}), first);
  EXPECT_NE(inputs({{.seed = 1, .step = 2}, 4}), first);
}

TEST(Masker, MasksWholeWords) {
  const PieceTokenizer tokenizer(pieces(100));
  const Masker masker(tokenizer, {.fraction = 0.3, .whole_words = true});
  // Words of one to three pieces.
  Tokens text;
  std::vector<std::size_t> word;
  for (std::int32_t w = 0; w < 20; ++w) {
    for (std::int32_t p = 0; p <= w % 3; ++p) {
      text.push_back(4 + 2 * w + (p > 0 ? 1 : 0));
      word.push_back(static_cast<std::size_t>(w));
    }
  }
  const auto max_masked =
      static_cast<std::size_t>(std::lround(0.3 * static_cast<double>(text.size())));
  std::vector<int> times_masked(20, 0);
  for (std::uint32_t i = 0; i < 500; ++i) {
    const MaskedText masked = masker(text, kNoLimit, {{.seed = 3, .step = i}, 0});
    EXPECT_LE(masked.positions.size(), max_masked);
    EXPECT_GE(masked.positions.size() + 2, max_masked);
    std::vector<std::size_t> counts(20, 0);
    for (const std::int32_t position : masked.positions) {
      ++counts[word[static_cast<std::size_t>(position - 1)]];
    }
    for (std::size_t w = 0; w < 20; ++w) {
      EXPECT_TRUE(counts[w] == 0 || counts[w] == w % 3 + 1) << "word " << w;
      times_masked[w] += counts[w] > 0 ? 1 : 0;
    }
  }
  for (const int times : times_masked) EXPECT_GT(times, 50);
  // A single long word exceeds the fraction but is masked nevertheless.
  const MaskedText one = masker({4, 5, 7, 9, 11}, kNoLimit, {});
  EXPECT_EQ(one.positions.size(), 5u);
}

TEST(Masker, CutsLongTextsAndAcceptsEmptyOnes) {
  const PieceTokenizer tokenizer(pieces(100));
  const Masker masker(tokenizer, {});
  const Tokens text = text_of(50, 3);
  const MaskedText cut = masker(text, 12, {});
  EXPECT_EQ(cut.inputs.size(), 12u);
  EXPECT_EQ(cut.inputs.back(), 2);
  EXPECT_LT(cut.positions.back(), 11);
  const MaskedText empty = masker({}, kNoLimit, {});
  EXPECT_EQ(empty.inputs, (Tokens{1, 2}));
  EXPECT_TRUE(empty.positions.empty());
}

TEST(Masker, NeedsAMaskSymbol) {
  const PieceTokenizer without({"▁a", "▁b"});
  const std::string message = error_of([&] { Masker(without, {}); });
  EXPECT_NE(message.find("tokenizer.symbols"), std::string::npos) << message;
  const PieceTokenizer other({"▁a", "<mask>", "▁b"});
  EXPECT_EQ(Masker(other, {})({3, 5, 3, 5, 3, 5, 3}, kNoLimit, {}).positions.size(), 1u);
}

TEST(CountCorrect, CountsRowsWhoseHighestScoreIsTheLabel) {
  CpuContext context;
  const Tensor scores =
      from_host(context, std::vector<float>{0, 2, 1, 5, 4, 4, 1, 1, 3, 9, 0, 0}, {4, 3});
  EXPECT_EQ(count_correct(scores, std::vector<std::int32_t>{1, 0, 0}), 2);
  EXPECT_EQ(count_correct(scores, std::vector<std::int32_t>{1, 0, 2, 0}), 4);
  EXPECT_EQ(count_correct(scores, std::vector<std::int32_t>{}), 0);
}

TrainConfig masked_config() {
  TrainConfig config = tiny_config();
  BertConfig model = small_bert_config(kTinyVocabulary);
  model.dropout = 0.1f;
  config.model = model;
  config.training.objective = ObjectiveKind::masked;
  config.training.label_smoothing = 0;
  config.training.batch_tokens = 60;
  return config;
}

using StartMode = RunFolder::StartMode;

ObjectiveLoss loss_of(const TinyRun& run, std::span<const std::uint32_t> pairs,
                      std::int32_t first_sentence = 0) {
  return run.objective().loss(gather(run.order(), pairs), first_sentence);
}

double value_of(const ObjectiveLoss& loss) { return to_host<double>(loss.total.value())[0]; }

TEST(MaskedObjective, MaskingIsFixedInEvaluationAndVariesByStepInTraining) {
  const TemporaryFolder folder;
  TinyRun run(folder.path(), StartMode::fresh, masked_config());
  const std::vector<std::uint32_t> texts = {3, 8, 40, 41};
  run.context().set_random_key({.seed = 1, .step = 1});
  const ObjectiveLoss first = loss_of(run, texts);
  run.context().set_random_key({.seed = 1, .step = 2});
  EXPECT_EQ(value_of(loss_of(run, texts, 100)), value_of(first));
  ASSERT_TRUE(first.correct.has_value());
  EXPECT_EQ(first.target_tokens, 4);
  EXPECT_EQ(first.tokens_processed, 4 * 2 + 7 + 7 + 4 + 5);
  // The loss of a text does not depend on its batch.
  double sum = 0;
  for (const std::uint32_t one : texts) sum += value_of(loss_of(run, std::vector{one}));
  EXPECT_NEAR(sum, value_of(first), 1e-4);
  const auto training_loss = [&](std::uint64_t step, std::int32_t sentence) {
    run.context().set_random_key({.seed = 1, .step = step});
    const ModeScope scope(run.context(), Mode::training);
    const ObjectiveLoss loss = loss_of(run, texts, sentence);
    EXPECT_FALSE(loss.correct.has_value());
    return value_of(loss);
  };
  EXPECT_EQ(training_loss(1, 0), training_loss(1, 0));
  EXPECT_NE(training_loss(1, 0), training_loss(2, 0));
  EXPECT_NE(training_loss(1, 0), training_loss(1, 4));
}

TEST(MaskedObjective, LearnsToPredictMaskedTokens) {
  const TemporaryFolder folder;
  TrainConfig config = masked_config();
  config.training.max_steps = 250;
  config.training.batch_tokens = 300;
  config.model = small_bert_config(kTinyVocabulary);
  TinyRun run(folder.path(), StartMode::fresh, config);
  std::vector<std::uint32_t> all(60);
  for (std::uint32_t i = 0; i < 60; ++i) all[i] = i;
  const ObjectiveLoss before = loss_of(run, all);
  run.train();
  const ObjectiveLoss after = loss_of(run, all);
  EXPECT_LT(value_of(after), 0.3 * value_of(before));
  EXPECT_GT(static_cast<double>(*after.correct), 0.8 * static_cast<double>(after.target_tokens));
}

TEST(MaskedObjective, RejectsModelsThatCannotPredictMaskedTokens) {
  CpuContext context;
  const auto model = make_small<Transformer>(context, small_config());
  const Tokenizers tokenizers(std::make_unique<PieceTokenizer>(pieces(15)));
  const TrainingOptions options;
  const std::string message = error_of([&] {
    MaskedObjective({*model, context, tokenizers, options});
  });
  EXPECT_NE(message.find("transformer cannot predict masked tokens"), std::string::npos) << message;
}

}  // namespace
}  // namespace nunchi::testing
