// Properties of the family rnn: the bottleneck, free running. every_model_test.cpp and
// golden_test.cpp test all families.
#include "nunchi/models/families/rnn.h"

#include <algorithm>

#include "tests/gradient_check.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

TEST(RnnGradients, AgreeWithCentralDifferencesForUntiedTablesAndUnequalStacks) {
  for (RnnConfig config : all_small_rnns(7)) {
    SCOPED_TRACE(ModelConfig(config)->to_json());
    CpuContext context({.threads = 1});
    context.arena().poison();
    config.width = 4;
    config.tied_embeddings = TiedEmbeddings::none;
    config.encoder_layers = config.cell == CellKind::gru ? 1 : 3;
    const auto model = make_small<Rnn>(context, config, {.dtype = DType::f64, .gradients = true});
    const PairBatch batch =
        pair_batch(context, sentences_of({3, 1, 2}, 7, 1), sentences_of({2, 0, 4}, 7, 2), 7);
    expect_gradients(context, model->parameters(),
                     [&] { return model->loss(batch, {.smoothing = 0.1, .chunk = 4}).total; });
  }
}

// Without attention, the decoder cannot distinguish two sources with the same last states.
TEST(RnnBottleneck, WithoutAttentionTheDecoderReadsOnlyTheLastState) {
  CpuContext context({.threads = 2});
  for (const RnnConfig& config : all_small_rnns()) {
    const auto model = make_small<Rnn>(context, config);
    const PairBatch batch =
        pair_batch(context, sentences_of({6, 4}, 37, 1), sentences_of({3, 5}, 37, 2), 37);
    Rnn::RecurrentMemory memory = model->encode(batch.source);
    const auto hidden = [&] { return to_host<float>(model->decode(batch.target, memory).value()); };
    const std::vector<float> before = hidden();
    fill(memory.rows.value(), 0.25);
    EXPECT_EQ(same_bits(before, hidden()), config.attention == RnnAttention::none);
    fill(memory.initial[0].h.value(), 0.25);
    EXPECT_FALSE(same_bits(before, hidden()));
  }
}

// The tokens that the decoder reads during free running.
class RnnFreeRunning : public ::testing::Test {
 protected:
  Tokens read(float probability, std::uint64_t seed, const std::vector<std::size_t>& sentences) {
    RnnConfig config = small_rnn(CellKind::gru, RnnAttention::dot);
    config.free_running = probability;
    const auto model = make_small<Rnn>(context_, config);
    std::vector<Tokens> sources, targets;
    for (const std::size_t b : sentences) {
      sources.push_back(sources_[b]);
      targets.push_back(targets_[b]);
    }
    batch_ = pair_batch(context_, sources, targets, 37, static_cast<std::int32_t>(sentences[0]));
    context_.set_random_key({.seed = seed, .step = 4});
    const TokenBatch target = model->free_running_target(batch_);
    Tokens ids = to_host<std::int32_t>(target.ids);
    ids.resize(static_cast<std::size_t>(target.rows.rows));
    return ids;
  }
  Tokens true_tokens() {
    Tokens ids = to_host<std::int32_t>(batch_.target.ids);
    ids.resize(static_cast<std::size_t>(batch_.target.rows.rows));
    return ids;
  }

  CpuContext context_{CpuOptions{.threads = 2}};
  const std::vector<Tokens> sources_ = sentences_of({9, 4, 30, 6}, 37, 1),
                            targets_ = sentences_of({50, 0, 200, 8}, 37, 2);
  PairBatch batch_;
};

TEST_F(RnnFreeRunning, DependsOnlyOnSeedAndSentence) {
  const Tokens all = read(0.4f, 7, {0, 1, 2, 3});
  EXPECT_EQ(all, read(0.4f, 7, {0, 1, 2, 3}));
  EXPECT_NE(all, read(0.4f, 8, {0, 1, 2, 3}));
  // A sentence with the same index reads the same tokens in another batch.
  const Tokens last = read(0.4f, 7, {2, 3});
  EXPECT_TRUE(std::equal(last.rbegin(), last.rend(), all.rbegin()));
}

TEST_F(RnnFreeRunning, ReplacesTheGivenFractionOfTokens) {
  read(0, 7, {0, 1, 2, 3});
  EXPECT_EQ(read(0, 7, {0, 1, 2, 3}), true_tokens());
  const Tokens some = read(0.4f, 7, {0, 1, 2, 3}), truth = true_tokens();
  double changed = 0;
  for (std::size_t i = 0; i < some.size(); ++i) changed += some[i] != truth[i];
  EXPECT_NEAR(changed / static_cast<double>(some.size()), 0.4, 0.08);
}

// Each token is the likeliest one given the tokens read before it; <s> is kept.
TEST_F(RnnFreeRunning, ReadsTheLikeliestTokens) {
  const Tokens predicted = read(1, 7, {0});
  ASSERT_EQ(predicted.size(), 51u);
  EXPECT_EQ(predicted[0], kTokens.start);
  const auto model = make_small<Rnn>(context_, small_rnn(CellKind::gru, RnnAttention::dot));
  const TokenBatch target = make_token_batch(context_, std::vector<Tokens>{predicted}, 37);
  const Variable hidden = model->decode(target, model->encode(batch_.source));
  const std::vector<float> logits = to_host<float>(model->logits(hidden, target.rows).value());
  for (std::size_t t = 0; t + 1 < predicted.size(); ++t) {
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(t * 37);
    EXPECT_EQ(std::max_element(row, row + 37) - row, predicted[t + 1]) << "position " << t + 1;
  }
}

TEST_F(RnnFreeRunning, ActsInTrainingOnly) {
  RnnConfig config = small_rnn(CellKind::lstm, RnnAttention::none);
  config.free_running = 0.9f;
  const auto model = make_small<Rnn>(context_, config, {.gradients = true});
  const PairBatch batch = pair_batch(context_, sources_, targets_, 37);
  context_.set_random_key({.seed = 1, .step = 1});
  const auto loss = [&] { return to_host<double>(model->loss(batch, {}).total.value())[0]; };
  const double plain = loss();
  double recorded = 0;
  {
    const ModeScope scope(context_, Mode::training);
    Tape tape(context_);
    const VocabularyLoss made = model->loss(batch, {});
    recorded = to_host<double>(made.total.value())[0];
    tape.backward(made.total);
  }
  EXPECT_NE(plain, recorded);
  EXPECT_EQ(plain, loss());
}

TEST(RnnConfigs, SurviveTheRoundTripThroughJson) {
  RnnConfig config = small_rnn(CellKind::lstm, RnnAttention::additive, false);
  config.encoder_layers = 3;
  config.decoder_layers = 1;
  config.tied_embeddings = TiedEmbeddings::target;
  config.dropout = 0.25f;
  config.free_running = 1;
  const std::string written = ModelConfig(config)->to_json();
  EXPECT_EQ(read_model_config(written, "config.json")->to_json(), written);
}

TEST(RnnConfigs, InvalidOptionsAreRefused) {
  const auto refusal = [](const std::string& json) {
    return error_of([&] { read_model_config(json, "config.json"); });
  };
  EXPECT_NE(refusal(R"({"family": "rnn", "width": 5})").find("even width"), std::string::npos);
  EXPECT_NE(refusal(R"({"family": "rnn", "cell": "elman"})").find("lstm"), std::string::npos);
  EXPECT_NE(refusal(R"({"family": "rnn", "atention": "dot"})").find("'attention'"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"family": "rnn", "free_running": 1.5})").find("free_running"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"family": "rnn", "encoder_layers": 0})").find("encoder_layers"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"family": "rnn", "source_vocabulary": 7})").find("tied_embeddings"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"family": "rnm"})").find("rnn"), std::string::npos);
}

}  // namespace
}  // namespace nunchi::testing
