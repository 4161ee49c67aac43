// Masked language modelling: which tokens are masked, and learning to predict them.
#include "nunchi/training/objectives/masked.h"

#include "tests/training/tiny_run.h"

namespace nunchi::testing {
namespace {

constexpr std::int32_t kMask = 3;
constexpr std::int64_t kLong = 1 << 20;

std::vector<std::string> pieces(int words) {
  std::vector<std::string> all = {"[MASK]"};
  for (int i = 0; i < words; ++i) {
    all.push_back("▁w" + std::to_string(i));
    all.push_back("x" + std::to_string(i));
  }
  return all;
}

Tokens text_of(std::int32_t length, std::uint64_t seed) {
  Tokens text = sentences_of({length}, 200, seed)[0];
  for (std::int32_t& token : text) token += kMask + 1;
  return text;
}

TEST(Masker, TakesOutTheShareThatIsAskedForAndOneAtLeast) {
  const PieceTokenizer tokenizer(pieces(100));
  for (const double share : {0.15, 0.5}) {
    const Masker masker(tokenizer, {.fraction = share});
    for (const std::int32_t length : {1, 2, 3, 10, 33, 100}) {
      const Tokens text = text_of(length, 1);
      const MaskedText masked = masker(text, kLong, {{.seed = 1, .step = 2}, 5});
      EXPECT_EQ(masked.positions.size(),
                static_cast<std::size_t>(std::max(1L, std::lround(share * length))));
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
      EXPECT_EQ(restored, enclosed(text, kUsualSpecialTokens, kLong))
          << "labels are what stood there";
    }
  }
}

TEST(Masker, FollowsTheRuleOf80And10And10AndMasksEveryPlaceEquallyOften) {
  const PieceTokenizer tokenizer(pieces(100));
  const Masker masker(tokenizer, {});
  constexpr std::int32_t kLength = 40;
  const Tokens text = text_of(kLength, 3);
  constexpr int kTimes = 5000;
  double masks = 0, kept = 0, others = 0;
  std::vector<int> at(kLength + 2, 0), drawn(static_cast<std::size_t>(tokenizer.vocabulary()), 0);
  for (std::uint32_t i = 0; i < kTimes; ++i) {
    const MaskedText masked = masker(text, kLong, {{.seed = 9, .step = i}, i % 7});
    for (std::size_t m = 0; m < masked.positions.size(); ++m) {
      const std::int32_t seen = masked.inputs[static_cast<std::size_t>(masked.positions[m])];
      ++at[static_cast<std::size_t>(masked.positions[m])];
      masks += seen == kMask ? 1 : 0;
      kept += seen == masked.labels[m] ? 1 : 0;
      if (seen == kMask || seen == masked.labels[m]) continue;
      ++others;
      ++drawn[static_cast<std::size_t>(seen)];
    }
  }
  constexpr double kAll = kTimes * 6;  // 15 % of 40
  EXPECT_NEAR(masks / kAll, 0.8, 0.01);
  EXPECT_NEAR(kept / kAll, 0.1, 0.01);
  EXPECT_NEAR(others / kAll, 0.1, 0.01);
  EXPECT_EQ(at.front() + at.back(), 0) << "<s> and </s> are never masked";
  for (std::size_t i = 1; i <= kLength; ++i) EXPECT_NEAR(at[i], kAll / kLength, 120) << i;
  for (std::size_t id = 0; id <= kMask; ++id) EXPECT_EQ(drawn[id], 0) << id;
  EXPECT_GT(std::ranges::count_if(drawn, [](int times) { return times > 0; }), 190);
}

TEST(Masker, IsAFunctionOfSeedStepAndSentence) {
  const PieceTokenizer tokenizer(pieces(100));
  const Masker masker(tokenizer, {});
  const Tokens text = text_of(50, 3);
  const auto inputs = [&](const TextDraws& draws) { return masker(text, kLong, draws).inputs; };
  const Tokens first = inputs({{.seed = 1, .step = 2}, 3});
  EXPECT_EQ(inputs({{.seed = 1, .step = 2}, 3}), first);
  EXPECT_NE(inputs({{.seed = 2, .step = 2}, 3}), first);
  EXPECT_NE(inputs({{.seed = 1, .step = 3}, 3}), first);
  EXPECT_NE(inputs({{.seed = 1, .step = 2}, 4}), first);
}

TEST(Masker, TakesOutWholeWords) {
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
  const auto most = static_cast<std::size_t>(std::lround(0.3 * static_cast<double>(text.size())));
  std::vector<int> taken(20, 0);
  for (std::uint32_t i = 0; i < 500; ++i) {
    const MaskedText masked = masker(text, kLong, {{.seed = 3, .step = i}, 0});
    EXPECT_LE(masked.positions.size(), most);
    EXPECT_GE(masked.positions.size() + 2, most);
    std::vector<std::size_t> counts(20, 0);
    for (const std::int32_t position : masked.positions) {
      ++counts[word[static_cast<std::size_t>(position - 1)]];
    }
    for (std::size_t w = 0; w < 20; ++w) {
      EXPECT_TRUE(counts[w] == 0 || counts[w] == w % 3 + 1) << "word " << w;
      taken[w] += counts[w] > 0 ? 1 : 0;
    }
  }
  for (const int times : taken) EXPECT_GT(times, 50);
  // One long word exceeds the share, but is masked all the same.
  const MaskedText one = masker({4, 5, 7, 9, 11}, kLong, {});
  EXPECT_EQ(one.positions.size(), 5u);
}

TEST(Masker, CutsWhatIsTooLongAndLivesWithNothing) {
  const PieceTokenizer tokenizer(pieces(100));
  const Masker masker(tokenizer, {});
  const Tokens text = text_of(50, 3);
  const MaskedText cut = masker(text, 12, {});
  EXPECT_EQ(cut.inputs.size(), 12u);
  EXPECT_EQ(cut.inputs.back(), 2);
  EXPECT_LT(cut.positions.back(), 11);
  const MaskedText nothing = masker({}, kLong, {});
  EXPECT_EQ(nothing.inputs, (Tokens{1, 2}));
  EXPECT_TRUE(nothing.positions.empty());
}

TEST(Masker, NeedsASymbol) {
  const PieceTokenizer without({"▁a", "▁b"});
  const std::string message = error_of([&] { Masker(without, {}); });
  EXPECT_NE(message.find("tokenizer.symbols"), std::string::npos) << message;
  const PieceTokenizer other({"▁a", "<mask>", "▁b"});
  EXPECT_EQ(Masker(other, {})({3, 5, 3, 5, 3, 5, 3}, kLong, {}).positions.size(), 1u);
}

TEST(CountRight, CountsRowsWhoseHighestIsTheLabel) {
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

using Begin = RunFolder::Begin;

ObjectiveLoss loss_in(const TinyRun& run, std::span<const std::uint32_t> pairs,
                      std::int32_t first = 0) {
  return run.objective().loss(gather(run.order(), pairs), first);
}

double value_of(const ObjectiveLoss& loss) { return to_host<double>(loss.total.value())[0]; }

TEST(MaskedObjective, IsTheSameAtEachCallWithoutATapeAndAnotherInEachStepWithOne) {
  const TemporaryFolder folder;
  TinyRun run(folder.path(), Begin::fresh, masked_config());
  const std::vector<std::uint32_t> some = {3, 8, 40, 41};
  run.context().set_random({.seed = 1, .step = 1});
  const ObjectiveLoss first = loss_in(run, some);
  run.context().set_random({.seed = 1, .step = 2});
  EXPECT_EQ(value_of(loss_in(run, some, 100)), value_of(first));
  ASSERT_TRUE(first.correct.has_value());
  EXPECT_EQ(first.target_tokens, 4);
  EXPECT_EQ(first.tokens_read, 4 * 2 + 7 + 7 + 4 + 5);
  // The batch does not matter.
  double sum = 0;
  for (const std::uint32_t one : some) sum += value_of(loss_in(run, std::vector{one}));
  EXPECT_NEAR(sum, value_of(first), 1e-4);
  const auto recorded = [&](std::uint64_t step, std::int32_t sentence) {
    run.context().set_random({.seed = 1, .step = step});
    const ModeScope scope(run.context(), Mode::training);
    const ObjectiveLoss loss = loss_in(run, some, sentence);
    EXPECT_FALSE(loss.correct.has_value());
    return value_of(loss);
  };
  EXPECT_EQ(recorded(1, 0), recorded(1, 0));
  EXPECT_NE(recorded(1, 0), recorded(2, 0));
  EXPECT_NE(recorded(1, 0), recorded(1, 4));
}

TEST(MaskedObjective, LearnsToFillIn) {
  const TemporaryFolder folder;
  TrainConfig config = masked_config();
  config.training.max_steps = 250;
  config.training.batch_tokens = 300;
  config.model = small_bert_config(kTinyVocabulary);
  TinyRun run(folder.path(), Begin::fresh, config);
  std::vector<std::uint32_t> all(60);
  for (std::uint32_t i = 0; i < 60; ++i) all[i] = i;
  const ObjectiveLoss before = loss_in(run, all);
  run.train();
  const ObjectiveLoss after = loss_in(run, all);
  EXPECT_LT(value_of(after), 0.3 * value_of(before));
  EXPECT_GT(static_cast<double>(*after.correct), 0.8 * static_cast<double>(after.target_tokens));
}

TEST(MaskedObjective, RefusesModelsThatDoNotFillIn) {
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
