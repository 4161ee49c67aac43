#include "nunchi/training/objectives/span_corruption.h"

#include <map>

#include "nunchi/autograd/tape.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

constexpr std::int32_t kFirstSentinel = 30;

std::vector<std::int32_t> sentinels(int count) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < count; ++i) ids.push_back(kFirstSentinel + i);
  return ids;
}

bool is_sentinel(std::int32_t token) { return token >= kFirstSentinel; }

// A text of `length` tokens, none of them a sentinel.
Tokens text_of(int length) {
  Tokens text;
  for (int i = 0; i < length; ++i) text.push_back(3 + i % 20);
  return text;
}

CorruptedText corrupted(int length, std::uint64_t step, std::uint32_t sentence = 0,
                        const SpanCorruptionOptions& options = {}) {
  return corrupt_spans(text_of(length), options, sentinels(20),
                       {.key = {.seed = 3, .step = step}, .sentence = sentence});
}

// Replaces each sentinel of the source by the tokens that follow it in the target.
Tokens restored(const CorruptedText& text) {
  std::map<std::int32_t, Tokens> spans;
  std::int32_t sentinel = 0;
  for (const std::int32_t token : text.target) {
    if (is_sentinel(token)) {
      sentinel = token;
    } else {
      spans[sentinel].push_back(token);
    }
  }
  Tokens original;
  for (const std::int32_t token : text.source) {
    if (!is_sentinel(token)) {
      original.push_back(token);
    } else {
      original.insert(original.end(), spans[token].begin(), spans[token].end());
    }
  }
  return original;
}

int count_sentinels(const Tokens& tokens) {
  return static_cast<int>(std::count_if(tokens.begin(), tokens.end(), is_sentinel));
}

TEST(SpanCorruption, TheTextCanBeRestored) {
  for (int length = 1; length <= 130; ++length) {
    for (std::uint64_t step = 0; step < 5; ++step) {
      const CorruptedText text = corrupted(length, step);
      ASSERT_EQ(restored(text), text_of(length));
    }
  }
}

TEST(SpanCorruption, RemovesTheGivenNumberOfTokensAndSpans) {
  for (const int length : {20, 40, 100}) {
    const int noise = length * 15 / 100, spans = static_cast<int>(std::lround(noise / 3.0));
    for (std::uint64_t step = 0; step < 20; ++step) {
      const CorruptedText text = corrupted(length, step);
      EXPECT_EQ(count_sentinels(text.source), spans);
      EXPECT_EQ(count_sentinels(text.target), spans);
      EXPECT_EQ(static_cast<int>(text.target.size()), noise + spans);
      for (std::size_t i = 1; i < text.source.size(); ++i) {
        EXPECT_FALSE(is_sentinel(text.source[i - 1]) && is_sentinel(text.source[i]))
            << "adjacent spans must be one span";
      }
      for (std::size_t i = 1; i < text.target.size(); ++i) {
        EXPECT_FALSE(is_sentinel(text.target[i - 1]) && is_sentinel(text.target[i]))
            << "a span has at least one token";
      }
    }
  }
}

TEST(SpanCorruption, SentinelsAreInOrder) {
  const CorruptedText text = corrupted(100, 1);
  for (const Tokens& side : {text.source, text.target}) {
    std::int32_t next = kFirstSentinel;
    for (const std::int32_t token : side) {
      if (is_sentinel(token)) {
        EXPECT_EQ(token, next++);
      }
    }
    EXPECT_EQ(next, kFirstSentinel + 5);
  }
}

TEST(SpanCorruption, RemovesAtLeastOneTokenAndUsesAtMostTheAvailableSentinels) {
  EXPECT_EQ(corrupted(1, 1).source, Tokens{kFirstSentinel});
  EXPECT_EQ(corrupted(1, 1).target, (Tokens{kFirstSentinel, 3}));
  EXPECT_EQ(corrupted(2, 1).source.size(), 2u);
  EXPECT_EQ(corrupted(2, 1).target.size(), 2u);
  const CorruptedText text = corrupt_spans(text_of(1000), {}, sentinels(4), {});
  EXPECT_EQ(count_sentinels(text.source), 4);
  EXPECT_EQ(text.target.size(), 154u);
  EXPECT_EQ(restored(text), text_of(1000));
  // So much noise that spans of one token cannot all be separated by kept tokens.
  EXPECT_EQ(restored(corrupted(10, 1, 0, {.noise = 0.9, .mean_span = 1})), text_of(10));
  EXPECT_NE(error_of([] { corrupt_spans({}, {}, sentinels(4), {}); }).find("without tokens"),
            std::string::npos);
}

TEST(SpanCorruption, DependsOnStepAndSentence) {
  EXPECT_EQ(corrupted(60, 4, 7).source, corrupted(60, 4, 7).source);
  EXPECT_NE(corrupted(60, 4, 7).source, corrupted(60, 5, 7).source);
  EXPECT_NE(corrupted(60, 4, 7).source, corrupted(60, 4, 8).source);
}

TEST(SpanCorruption, RemovesAllTokensAboutEquallyOften) {
  constexpr int kLength = 40, kDraws = 20000;
  std::vector<int> times_removed(kLength, 0);
  for (int draw = 0; draw < kDraws; ++draw) {
    int position = 0;
    const CorruptedText text = corrupted(kLength, static_cast<std::uint64_t>(draw));
    // The length of each span, from the target.
    std::vector<int> lengths;
    for (const std::int32_t token : text.target) {
      if (is_sentinel(token)) {
        lengths.push_back(0);
      } else {
        ++lengths.back();
      }
    }
    for (const std::int32_t token : text.source) {
      if (!is_sentinel(token)) {
        ++position;
        continue;
      }
      for (int i = lengths[static_cast<std::size_t>(token - kFirstSentinel)]; i > 0; --i) {
        ++times_removed[static_cast<std::size_t>(position++)];
      }
    }
  }
  // Two spans of three tokens: inner tokens are reached from both sides, outer ones from one.
  for (int i = 0; i < kLength; ++i) {
    const double fraction =
        static_cast<double>(times_removed[static_cast<std::size_t>(i)]) / kDraws;
    EXPECT_GT(fraction, i < 4 || i >= kLength - 4 ? 0.04 : 0.13) << i;
    EXPECT_LT(fraction, 0.19) << i;
  }
}

// A tokenizer of 37 tokens, some of which may be sentinels; it cannot encode.
class Pieces final : public Tokenizer {
 public:
  explicit Pieces(std::map<std::int32_t, std::string> names) : names_(std::move(names)) {}
  std::int64_t vocabulary() const override { return 37; }
  Tokens encode(std::string_view) const override { return {}; }
  std::string decode(std::span<const std::int32_t>) const override { return {}; }
  std::string piece(std::int32_t id) const override {
    const auto found = names_.find(id);
    return found != names_.end() ? found->second : "piece";
  }
  SpecialTokens special() const override { return kUsualSpecialTokens; }
  std::uint64_t fingerprint() const override { return 1; }
  const std::string& serialized() const override { return serialized_; }

 private:
  std::map<std::int32_t, std::string> names_;
  std::string serialized_;
};

TEST(SpanCorruption, FindsSentinelsInAnyOrderUpToTheFirstThatIsMissing) {
  EXPECT_EQ(sentinels_of(Pieces({{9, "<extra_id_0>"}, {7, "<extra_id_1>"}, {8, "<extra_id_3>"}})),
            (std::vector<std::int32_t>{9, 7}));
  EXPECT_TRUE(sentinels_of(Pieces({{8, "<extra_id_1>"}})).empty());
}

class SpanObjective : public ::testing::Test {
 protected:
  SpanObjective() {
    batch_.targets = sentences_of({9, 32, 1, 12}, 30, 1);
    batch_.sources = std::vector<Tokens>(4);
    batch_.pairs = {4, 8, 15, 16};
  }
  std::unique_ptr<Objective> objective(const Tokenizers& tokenizers) {
    return info_of(ObjectiveKind::span_corruption).make({*model_, context_, tokenizers, options_});
  }
  static std::unique_ptr<Tokenizer> with_sentinels() {
    return std::make_unique<Pieces>(
        std::map<std::int32_t, std::string>{{31, "<extra_id_0>"}, {32, "<extra_id_1>"}});
  }

  CpuContext context_{CpuOptions{.threads = 1}};
  std::unique_ptr<Transformer> model_ =
      make_small<Transformer>(context_, small_config(), {.gradients = true});
  TrainingOptions options_;
  HostBatch batch_;
};

TEST_F(SpanObjective, SpansVaryByStepInTrainingAndAreFixedInEvaluation) {
  const Tokenizers tokenizers(with_sentinels());
  const auto spans = objective(tokenizers);
  const auto training_loss = [&](std::uint64_t step) {
    context_.set_random_key({.seed = 1, .step = step});
    const ModeScope scope(context_, Mode::training);
    return to_host<double>(spans->loss(batch_, 0).total.value())[0];
  };
  const auto evaluation_loss = [&](std::uint64_t step) {
    context_.set_random_key({.seed = 1, .step = step});
    return to_host<double>(spans->loss(batch_, 0).total.value())[0];
  };
  EXPECT_EQ(training_loss(1), training_loss(1));
  EXPECT_NE(training_loss(1), training_loss(2));
  EXPECT_EQ(evaluation_loss(1), evaluation_loss(2));
}

TEST_F(SpanObjective, CountsTheTargetTokens) {
  const Tokenizers tokenizers(with_sentinels());
  // 1, 5, 1 and 2 removed tokens; a sentinel for each of 1, 2, 1 and 1 spans; 4 times </s>.
  EXPECT_EQ(objective(tokenizers)->loss(batch_, 0).target_tokens,
            1 + 5 + 1 + 2 + 1 + 2 + 1 + 1 + 4);
}

TEST_F(SpanObjective, NeedsSentinelsAndOneSharedTokenizer) {
  const Tokenizers none(std::make_unique<Pieces>(std::map<std::int32_t, std::string>()));
  EXPECT_NE(error_of([&] { objective(none); }).find("put <extra_id_0>"), std::string::npos);
  const Tokenizers two(with_sentinels(), with_sentinels());
  EXPECT_NE(error_of([&] { objective(two); }).find("tokenizer.shared: true"), std::string::npos);
}

TEST_F(SpanObjective, SpansInEvaluationDoNotDependOnTheBatch) {
  const Tokenizers tokenizers(with_sentinels());
  const std::unique_ptr<Objective> spans = objective(tokenizers);
  const auto loss = [&](const HostBatch& batch) {
    return to_host<double>(spans->loss(batch, 0).total.value())[0];
  };
  double sum = 0;
  for (std::size_t i = batch_.targets.size(); i-- > 0;) {
    HostBatch one;
    one.targets = {batch_.targets[i]};
    one.sources = std::vector<Tokens>(1);
    one.pairs = {batch_.pairs[i]};
    sum += loss(one);
  }
  EXPECT_NEAR(sum, loss(batch_), 1e-3);
}

}  // namespace
}  // namespace nunchi::testing
