// One copy of the weights serves several threads, each with a context of its own.
#include <barrier>
#include <functional>
#include <thread>

#include "nunchi/autograd/weight_forms.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

using Values = std::vector<float>;

// What `run` gives on each of several threads that start together.
std::vector<Values> at_once(int threads, const std::function<Values(ContextBase&)>& run) {
  std::vector<Values> found(static_cast<std::size_t>(threads));
  std::barrier start(threads);
  std::vector<std::thread> workers;
  for (Values& own : found) {
    workers.emplace_back([&] {
      CpuContext context({.threads = 1});
      start.arrive_and_wait();
      own = run(context);
    });
  }
  for (std::thread& worker : workers) worker.join();
  return found;
}

// The losses of tokens by a model whose weights are on another context, first of all threads at
// once, when no form of a weight exists yet.
template <class Model, class Config, class Loss>
void expect_same_bits_on_all_threads(const Config& config, const Loss& loss) {
  constexpr int kThreads = 2, kRounds = 5;
  for (int round = 0; round < kRounds; ++round) {
    CpuContext weights({.threads = 1}), alone({.threads = 1});
    const auto shared = make_small<Model>(weights, config);
    const auto own = make_small<Model>(alone, config);
    const Values expected = loss(*own, alone);
    for (const Values& found : at_once(kThreads, [&](ContextBase& context) {
           Values all = loss(*shared, context);
           EXPECT_TRUE(same_bits(all, loss(*shared, context)));
           return all;
         })) {
      EXPECT_TRUE(same_bits(found, expected));
    }
    // The threads' contexts are gone; the forms that they made are not.
    EXPECT_TRUE(same_bits(loss(*shared, weights), expected));
  }
}

Values pair_losses(const TranslationModel& model, ContextBase& context) {
  const PairBatch batch = pair_batch(context, sentences_of({5, 9, 3, 17}, 37, 1),
                                     sentences_of({4, 8, 12, 6}, 37, 2), 37);
  const VocabularyLoss loss = model.loss(batch, {});
  return to_host<float>(loss.tokens.rows(0, batch.target.rows.rows));
}

Values text_losses(const LanguageModel& model, ContextBase& context) {
  const TextBatch batch = make_text_batch(context, sentences_of({5, 9, 3, 17}, 37, 1), 37);
  const VocabularyLoss loss = model.loss(batch, {});
  return to_host<float>(loss.tokens.rows(0, batch.inputs.rows.rows));
}

TEST(SharedWeights, AreReadByATransformerOnSeveralThreads) {
  for (const auto placement : {nn::NormPlacement::post, nn::NormPlacement::pre}) {
    TransformerConfig config = small_config();
    config.norm_placement = placement;
    expect_same_bits_on_all_threads<Transformer>(config, pair_losses);
  }
}

TEST(SharedWeights, AreReadByAGptOfEachPositionOnSeveralThreads) {
  for (const auto position : {nn::PositionKind::sinusoidal, nn::PositionKind::learned,
                              nn::PositionKind::rotary, nn::PositionKind::alibi}) {
    GptConfig config = small_gpt_config();
    config.position = position;
    expect_same_bits_on_all_threads<Gpt>(config, text_losses);
  }
}

TEST(SharedWeights, AreReadByAnRnnOnSeveralThreads) {
  for (const auto attention : {RnnAttention::additive, RnnAttention::dot}) {
    expect_same_bits_on_all_threads<Rnn>(small_rnn(CellKind::lstm, attention), pair_losses);
  }
}

TEST(SharedWeights, LeaveNothingOnTheContextsOfThreads) {
  CpuContext weights({.threads = 1}), worker({.threads = 1});
  const auto model = make_small<Transformer>(weights, small_config());
  pair_losses(*model, worker);
  EXPECT_EQ(worker.arena().in_use(), 0u);
}

}  // namespace
}  // namespace nunchi::testing
