// What must hold for every recurrent model: gradients, causality, sentences that do not notice
// their batch, attention that is what it shows, words of its own.
#include "nunchi/models/rnn.h"

#include <algorithm>

#include "nunchi/kernels/product.h"
#include "nunchi/models/folder.h"
#include "nunchi/trace/trace.h"
#include "tests/files.h"
#include "tests/gradient_check.h"
#include "tests/models/small_rnns.h"

namespace nunchi::testing {
namespace {

void check_gradients(RnnConfig config) {
  SCOPED_TRACE(config.to_json());
  CpuContext context({.threads = 1});
  context.arena().poison();
  config.source_vocabulary = config.target_vocabulary = 7;
  config.width = 4;
  const auto model = make_rnn(context, config, {.dtype = DType::f64, .gradients = true});
  const PairBatch batch = make_pair_batch(context, sentences_of({3, 1, 2}, 7, 1),
                                          sentences_of({2, 0, 4}, 7, 2), {7, 7});
  expect_gradients(context, model->parameters(),
                   [&] { return model->loss(batch, {.smoothing = 0.1, .chunk = 4}).total; });
}

TEST(RnnGradients, AgreeWithDifferencesForEveryKind) {
  for (const RnnConfig& config : all_small_rnns()) check_gradients(config);
}

TEST(RnnGradients, AgreeWithDifferencesUntiedWithDropoutAndUnlikeStacks) {
  for (RnnConfig config : all_small_rnns()) {
    if (!config.bidirectional) continue;
    config.dropout = 0.3f;
    config.tied_embeddings = TiedEmbeddings::none;
    config.encoder_layers = config.cell == CellKind::gru ? 1 : 3;
    check_gradients(config);
  }
}

TEST(RnnCausality, AFutureTokenChangesNoEarlierLogit) {
  CpuContext context({.threads = 2});
  context.arena().poison();
  for (const RnnConfig& config : all_small_rnns()) {
    const auto model = make_rnn(context, config);
    const std::vector<Tokens> source = sentences_of({9, 30}, 37, 1);
    std::vector<Tokens> target = sentences_of({5, 40}, 37, 2);
    const auto logits = [&] {
      return logits_of(*model, make_pair_batch(context, source, target, {37, 37}));
    };
    const std::vector<float> before = logits();
    const std::size_t first_row = target[0].size() + 1;  // of the second sentence
    for (const std::size_t changed : {0, 1, 17, 39}) {
      std::int32_t& token = target[1][changed];
      const std::int32_t kept = std::exchange(token, (token + 1) % 37);
      const std::vector<float> after = logits();
      token = kept;
      // Token `changed` is first seen in row changed + 1.
      const auto unchanged = static_cast<std::ptrdiff_t>((first_row + changed + 1) * 37);
      EXPECT_TRUE(same_bits<float>({before.begin(), before.begin() + unchanged},
                                   {after.begin(), after.begin() + unchanged}))
          << "token " << changed;
      EXPECT_FALSE(same_bits(before, after)) << "the token must matter to later rows";
    }
  }
}

TEST(RnnBatchInvariance, ASentenceGetsTheSameLogitsInAnyBatch) {
  if (!kernels::rows_are_independent()) {
    GTEST_SKIP() << kernels::product_library()
                 << " does not keep a row's bits when others are added";
  }
  std::vector<RnnConfig> configs = all_small_rnns();
  configs.push_back(small_rnn(CellKind::lstm, RnnAttention::additive));
  configs.back().width = 256;
  for (const int threads : {1, 2}) {
    CpuContext context({.threads = threads});
    for (const RnnConfig& config : configs) {
      const auto model = make_rnn(context, config);
      constexpr std::size_t kSentences = 40;
      std::vector<std::int32_t> source_lengths, target_lengths;
      for (int b = 0; b < static_cast<int>(kSentences); ++b) {
        source_lengths.push_back(1 + (b * 7) % 20);
        target_lengths.push_back((b * 11) % 17);
      }
      const std::vector<Tokens> sources = sentences_of(source_lengths, 37, 1);
      const std::vector<Tokens> targets = sentences_of(target_lengths, 37, 2);
      std::vector<std::vector<float>> alone;
      for (std::size_t b = 0; b < kSentences; ++b) {
        alone.push_back(
            logits_of(*model, make_pair_batch(context, std::span(sources).subspan(b, 1),
                                              std::span(targets).subspan(b, 1), {37, 37})));
      }
      for (const std::size_t size : {2, 7, 40}) {
        for (std::size_t first = 0; first < kSentences; first += size) {
          std::vector<Tokens> some_sources, some_targets;
          std::vector<float> expected;
          for (std::size_t i = first; i < std::min(first + size, kSentences); ++i) {
            const std::size_t b = (i * 29 + size) % kSentences;
            some_sources.push_back(sources[b]);
            some_targets.push_back(targets[b]);
            expected.insert(expected.end(), alone[b].begin(), alone[b].end());
          }
          const std::vector<float> together =
              logits_of(*model, make_pair_batch(context, some_sources, some_targets, {37, 37}));
          ASSERT_TRUE(same_bits(together, expected))
              << config.to_json() << " in batches of " << size << ", off by "
              << largest_difference(together, expected);
        }
      }
    }
  }
}

// Two sources whose last states are the same cannot be told apart without attention.
TEST(RnnBottleneck, WithoutAttentionOnlyTheLastStateCounts) {
  CpuContext context({.threads = 2});
  for (const RnnConfig& config : all_small_rnns()) {
    const auto model = make_rnn(context, config);
    const PairBatch batch = make_pair_batch(context, sentences_of({6, 4}, 37, 1),
                                            sentences_of({3, 5}, 37, 2), {37, 37});
    Rnn::Memory memory = model->encode(batch.source);
    const auto hidden = [&] {
      return to_host<float>(model->decode(batch.target, memory, batch.source.rows).value());
    };
    const std::vector<float> before = hidden();
    fill(memory.states.value(), 0.25);
    EXPECT_EQ(same_bits(before, hidden()), config.attention == RnnAttention::none);
    fill(memory.first[0].h.value(), 0.25);
    EXPECT_FALSE(same_bits(before, hidden()));
  }
}

TEST(RnnTrace, ShowsTheAttentionThatWasUsed) {
  CpuContext context({.threads = 2});
  for (const RnnConfig& config : all_small_rnns()) {
    const auto model = make_rnn(context, config);
    const PairBatch batch = make_pair_batch(context, sentences_of({20, 1, 9}, 37, 1),
                                            sentences_of({15, 0, 12}, 37, 2), {37, 37});
    const std::vector<float> before = logits_of(*model, batch);
    Trace trace;
    context.set_trace(&trace);
    const std::vector<float> after = logits_of(*model, batch);
    context.set_trace(nullptr);
    EXPECT_TRUE(same_bits(before, after)) << "looking must not change what is seen";
    const TapRecord* weights =
        trace.find(Tap::attention_weights, "decoder", config.decoder_layers - 1, "cross_attention");
    ASSERT_EQ(weights != nullptr, config.attention != RnnAttention::none);
    EXPECT_NE(trace.find(Tap::layer_output, "encoder", 1), nullptr);
    if (weights == nullptr) continue;
    const TapRecord *context_rows = trace.find(Tap::attention_context, "decoder",
                                               config.decoder_layers - 1, "cross_attention"),
                    *states = trace.find(Tap::stack_output, "encoder", -1);
    ASSERT_NE(context_rows, nullptr);
    ASSERT_NE(states, nullptr);
    EXPECT_EQ(weights->heads, 1);
    std::size_t first_query = 0, first_key = 0;
    for (std::size_t b = 0; b < weights->lengths.size(); ++b) {
      const auto queries = static_cast<std::size_t>(weights->lengths[b]),
                 keys = static_cast<std::size_t>(weights->keys[b]);
      for (std::size_t i = 0; i < queries; ++i) {
        const float* row = weights->values.data() + weights->begin[b] + i * keys;
        double sum = 0;
        std::vector<double> mixed(40, 0);
        for (std::size_t j = 0; j < keys; ++j) {
          sum += row[j];
          for (std::size_t c = 0; c < 40; ++c) {
            mixed[c] += double{row[j]} * states->values[(first_key + j) * 40 + c];
          }
        }
        EXPECT_NEAR(sum, 1, 1e-5);
        for (std::size_t c = 0; c < 40; ++c) {
          EXPECT_NEAR(mixed[c], context_rows->values[(first_query + i) * 40 + c], 1e-5);
        }
      }
      first_query += queries;
      first_key += keys;
    }
  }
}

// What the decoder reads when it runs free.
class RnnFreeRunning : public ::testing::Test {
 protected:
  Tokens read(float share, std::uint64_t seed, const std::vector<std::size_t>& sentences) {
    RnnConfig config = small_rnn(CellKind::gru, RnnAttention::dot);
    config.free_running = share;
    const auto model = make_rnn(context_, config);
    std::vector<Tokens> sources, targets;
    for (const std::size_t b : sentences) {
      sources.push_back(sources_[b]);
      targets.push_back(targets_[b]);
    }
    batch_ = make_pair_batch(context_, sources, targets, {37, 37},
                             {.first_sentence = static_cast<std::int32_t>(sentences[0])});
    context_.set_random({.seed = seed, .step = 4});
    const TokenBatch own = model->with_own_words(batch_);
    Tokens ids = to_host<std::int32_t>(own.ids);
    ids.resize(static_cast<std::size_t>(own.rows.rows));
    return ids;
  }
  Tokens true_words() {
    Tokens ids = to_host<std::int32_t>(batch_.target.ids);
    ids.resize(static_cast<std::size_t>(batch_.target.rows.rows));
    return ids;
  }

  CpuContext context_{CpuOptions{.threads = 2}};
  const std::vector<Tokens> sources_ = sentences_of({9, 4, 30, 6}, 37, 1),
                            targets_ = sentences_of({50, 0, 200, 8}, 37, 2);
  PairBatch batch_;
};

TEST_F(RnnFreeRunning, DependsOnSeedAndSentenceAlone) {
  const Tokens all = read(0.4f, 7, {0, 1, 2, 3});
  EXPECT_EQ(all, read(0.4f, 7, {0, 1, 2, 3}));
  EXPECT_NE(all, read(0.4f, 8, {0, 1, 2, 3}));
  // In another batch, with the same number, a sentence reads the same.
  const Tokens last = read(0.4f, 7, {2, 3});
  EXPECT_TRUE(std::equal(last.rbegin(), last.rend(), all.rbegin()));
}

TEST_F(RnnFreeRunning, ReplacesItsShare) {
  read(0, 7, {0, 1, 2, 3});
  EXPECT_EQ(read(0, 7, {0, 1, 2, 3}), true_words());
  const Tokens some = read(0.4f, 7, {0, 1, 2, 3}), truth = true_words();
  double changed = 0;
  for (std::size_t i = 0; i < some.size(); ++i) changed += some[i] != truth[i];
  EXPECT_NEAR(changed / static_cast<double>(some.size()), 0.4, 0.08);
}

// Alone, each word is the likeliest after what was read before it, and <s> stays.
TEST_F(RnnFreeRunning, TakesTheLikeliestAfterWhatItHasRead) {
  const Tokens own = read(1, 7, {0});
  ASSERT_EQ(own.size(), 51u);
  EXPECT_EQ(own[0], 1);
  const auto model = make_rnn(context_, small_rnn(CellKind::gru, RnnAttention::dot));
  const TokenBatch target = make_token_batch(context_, std::vector<Tokens>{own}, 37);
  const Variable hidden = model->decode(target, model->encode(batch_.source), batch_.source.rows);
  const std::vector<float> logits = to_host<float>(model->logits(hidden, target.rows).value());
  for (std::size_t t = 0; t + 1 < own.size(); ++t) {
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(t * 37);
    EXPECT_EQ(std::max_element(row, row + 37) - row, own[t + 1]) << "position " << t + 1;
  }
}

TEST_F(RnnFreeRunning, ActsInTrainingOnly) {
  RnnConfig config = small_rnn(CellKind::lstm, RnnAttention::none);
  config.free_running = 0.9f;
  const auto model = make_rnn(context_, config, {.gradients = true});
  const PairBatch batch = make_pair_batch(context_, sources_, targets_, {37, 37});
  context_.set_random({.seed = 1, .step = 1});
  const auto loss = [&] { return to_host<double>(model->loss(batch, {}).total.value())[0]; };
  const double plain = loss();
  double recorded = 0;
  {
    Tape tape(context_);
    const VocabularyLoss made = model->loss(batch, {});
    recorded = to_host<double>(made.total.value())[0];
    tape.backward(made.total);
  }
  EXPECT_NE(plain, recorded);
  EXPECT_EQ(plain, loss());
}

TEST(RnnFolder, RoundTripKeepsEveryBit) {
  CpuContext context({.threads = 2});
  const TemporaryFolder folder;
  for (const RnnConfig& config : all_small_rnns()) {
    const auto written = make_rnn(context, config);
    save_model(*written, folder / "model");
    const std::unique_ptr<Model> read = load_model(folder / "model", context);
    EXPECT_EQ(read->family(), "rnn");
    EXPECT_EQ(read->config_json(), written->config_json());
    const PairBatch batch = make_pair_batch(context, sentences_of({6, 4}, 37, 1),
                                            sentences_of({3, 5}, 37, 2), {37, 37});
    EXPECT_TRUE(
        same_bits(logits_of(dynamic_cast<const Rnn&>(*read), batch), logits_of(*written, batch)));
    std::filesystem::remove_all(folder / "model");
  }
}

TEST(RnnConfigs, GoToJsonAndBack) {
  RnnConfig config = small_rnn(CellKind::lstm, RnnAttention::additive, false);
  config.encoder_layers = 3;
  config.decoder_layers = 1;
  config.tied_embeddings = TiedEmbeddings::target;
  config.dropout = 0.25f;
  config.free_running = 1;
  EXPECT_EQ(RnnConfig::from_json(config.to_json(), "config.json").to_json(), config.to_json());
}

TEST(RnnConfigs, WhatMakesNoSenseIsRefusedInWords) {
  const auto refusal = [](const std::string& json) {
    return error_of([&] { RnnConfig::from_json(json, "config.json"); });
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
  EXPECT_NE(refusal(R"({"family": "transformer"})").find("rnn"), std::string::npos);
}

}  // namespace
}  // namespace nunchi::testing
