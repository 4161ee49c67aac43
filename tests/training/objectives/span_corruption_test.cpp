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
Tokens put_back(const CorruptedText& text) {
  std::map<std::int32_t, Tokens> spans;
  std::int32_t last = 0;
  for (const std::int32_t token : text.target) {
    if (is_sentinel(token)) {
      last = token;
    } else {
      spans[last].push_back(token);
    }
  }
  Tokens whole;
  for (const std::int32_t token : text.source) {
    if (!is_sentinel(token)) {
      whole.push_back(token);
    } else {
      whole.insert(whole.end(), spans[token].begin(), spans[token].end());
    }
  }
  return whole;
}

int count_sentinels(const Tokens& tokens) {
  return static_cast<int>(std::count_if(tokens.begin(), tokens.end(), is_sentinel));
}

TEST(SpanCorruption, PutBackWhereItStoodItIsTheText) {
  for (int length = 1; length <= 130; ++length) {
    for (std::uint64_t step = 0; step < 5; ++step) {
      const CorruptedText text = corrupted(length, step);
      ASSERT_EQ(put_back(text), text_of(length));
    }
  }
}

TEST(SpanCorruption, TakesAsMuchAsItIsToldInStretchesOfTheirLength) {
  for (const int length : {20, 40, 100}) {
    const int noise = length * 15 / 100, spans = static_cast<int>(std::lround(noise / 3.0));
    for (std::uint64_t step = 0; step < 20; ++step) {
      const CorruptedText text = corrupted(length, step);
      EXPECT_EQ(count_sentinels(text.source), spans);
      EXPECT_EQ(count_sentinels(text.target), spans);
      EXPECT_EQ(static_cast<int>(text.target.size()), noise + spans);
      for (std::size_t i = 1; i < text.source.size(); ++i) {
        EXPECT_FALSE(is_sentinel(text.source[i - 1]) && is_sentinel(text.source[i]))
            << "two stretches next to one another are one";
      }
      for (std::size_t i = 1; i < text.target.size(); ++i) {
        EXPECT_FALSE(is_sentinel(text.target[i - 1]) && is_sentinel(text.target[i]))
            << "a stretch has a token";
      }
    }
  }
}

TEST(SpanCorruption, SentinelsComeInOrder) {
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

TEST(SpanCorruption, ShortTextsLoseATokenAndLongOnesUseTheSentinelsThereAre) {
  EXPECT_EQ(corrupted(1, 1).source, Tokens{kFirstSentinel});
  EXPECT_EQ(corrupted(1, 1).target, (Tokens{kFirstSentinel, 3}));
  EXPECT_EQ(corrupted(2, 1).source.size(), 2u);
  EXPECT_EQ(corrupted(2, 1).target.size(), 2u);
  const CorruptedText text = corrupt_spans(text_of(1000), {}, sentinels(4), {});
  EXPECT_EQ(count_sentinels(text.source), 4);
  EXPECT_EQ(text.target.size(), 154u);
  EXPECT_EQ(put_back(text), text_of(1000));
  // More noise than spans can hold apart.
  EXPECT_EQ(put_back(corrupted(10, 1, 0, {.noise = 0.9, .mean_span = 1})), text_of(10));
  EXPECT_NE(error_of([] { corrupt_spans({}, {}, sentinels(4), {}); }).find("without tokens"),
            std::string::npos);
}

TEST(SpanCorruption, IsDrawnFromSeedStepAndSentenceAlone) {
  EXPECT_EQ(corrupted(60, 4, 7).source, corrupted(60, 4, 7).source);
  EXPECT_NE(corrupted(60, 4, 7).source, corrupted(60, 5, 7).source);
  EXPECT_NE(corrupted(60, 4, 7).source, corrupted(60, 4, 8).source);
}

TEST(SpanCorruption, ReachesEveryTokenAboutAsOften) {
  constexpr int kLength = 40, kDraws = 20000;
  std::vector<int> taken(kLength, 0);
  for (int draw = 0; draw < kDraws; ++draw) {
    int at = 0;
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
        ++at;
        continue;
      }
      for (int i = lengths[static_cast<std::size_t>(token - kFirstSentinel)]; i > 0; --i) {
        ++taken[static_cast<std::size_t>(at++)];
      }
    }
  }
  // Two spans of three tokens: inner tokens are reached from both sides, outer ones from one.
  for (int i = 0; i < kLength; ++i) {
    const double share = static_cast<double>(taken[static_cast<std::size_t>(i)]) / kDraws;
    EXPECT_GT(share, i < 4 || i >= kLength - 4 ? 0.04 : 0.13) << i;
    EXPECT_LT(share, 0.19) << i;
  }
}

// A tokenizer of 37 tokens, of which some may be sentinels; it encodes nothing.
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

TEST_F(SpanObjective, LearnsFromOtherStretchesInEachStepAndIsJudgedByTheSame) {
  const Tokenizers tokenizers(with_sentinels());
  const auto spans = objective(tokenizers);
  const auto learned = [&](std::uint64_t step) {
    context_.set_random({.seed = 1, .step = step});
    const ModeScope scope(context_, Mode::training);
    return to_host<double>(spans->loss(batch_, 0).total.value())[0];
  };
  const auto judged = [&](std::uint64_t step) {
    context_.set_random({.seed = 1, .step = step});
    return to_host<double>(spans->loss(batch_, 0).total.value())[0];
  };
  EXPECT_EQ(learned(1), learned(1));
  EXPECT_NE(learned(1), learned(2));
  EXPECT_EQ(judged(1), judged(2));
}

TEST_F(SpanObjective, CountsTheTokensThatAreToBeSaid) {
  const Tokenizers tokenizers(with_sentinels());
  // 1, 5, 1 and 2 tokens in 1, 2, 1 and 1 spans; a sentinel for each, and </s>.
  EXPECT_EQ(objective(tokenizers)->loss(batch_, 0).target_tokens,
            1 + 5 + 1 + 2 + 1 + 2 + 1 + 1 + 4);
}

TEST_F(SpanObjective, NeedsSentinelsOfOneTokenizer) {
  const Tokenizers none(std::make_unique<Pieces>(std::map<std::int32_t, std::string>()));
  EXPECT_NE(error_of([&] { objective(none); }).find("put <extra_id_0>"), std::string::npos);
  const Tokenizers two(with_sentinels(), with_sentinels());
  EXPECT_NE(error_of([&] { objective(two); }).find("tokenizer.shared: true"), std::string::npos);
}

TEST_F(SpanObjective, WithoutATapeATextLosesTheSameSpansInEveryBatch) {
  const Tokenizers tokenizers(with_sentinels());
  const std::unique_ptr<Objective> spans = objective(tokenizers);
  const auto loss = [&](const HostBatch& batch) {
    return to_host<double>(spans->loss(batch, 0).total.value())[0];
  };
  double apart = 0;
  for (std::size_t i = batch_.targets.size(); i-- > 0;) {
    HostBatch one;
    one.targets = {batch_.targets[i]};
    one.sources = std::vector<Tokens>(1);
    one.pairs = {batch_.pairs[i]};
    apart += loss(one);
  }
  EXPECT_NEAR(apart, loss(batch_), 1e-3);
}

}  // namespace
}  // namespace nunchi::testing
