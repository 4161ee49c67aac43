// Several threads, each with its own context, share one copy of the weights.
#include <barrier>
#include <functional>
#include <thread>

#include "nunchi/autograd/weight_forms.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

using Values = std::vector<float>;

// The results of `run` on several threads that start at the same time.
std::vector<Values> run_concurrently(int threads, const std::function<Values(ContextBase&)>& run) {
  std::vector<Values> found(static_cast<std::size_t>(threads));
  std::barrier start(threads);
  std::vector<std::thread> workers;
  for (Values& result : found) {
    workers.emplace_back([&] {
      CpuContext context({.threads = 1});
      start.arrive_and_wait();
      result = run(context);
    });
  }
  for (std::thread& worker : workers) worker.join();
  return found;
}

// Compares the token losses of threads that share a model of another context with those of a model
// on its own context. All threads start before any cached form of a weight exists.
template <class Model, class Config, class Loss>
void expect_same_bits_on_all_threads(const Config& config, const Loss& loss) {
  constexpr int kThreads = 2, kRounds = 5;
  for (int round = 0; round < kRounds; ++round) {
    CpuContext weights({.threads = 1}), alone({.threads = 1});
    const auto shared = make_small<Model>(weights, config);
    const auto unshared = make_small<Model>(alone, config);
    const Values expected = loss(*unshared, alone);
    for (const Values& found : run_concurrently(kThreads, [&](ContextBase& context) {
           Values losses = loss(*shared, context);
           EXPECT_TRUE(same_bits(losses, loss(*shared, context)));
           return losses;
         })) {
      EXPECT_TRUE(same_bits(found, expected));
    }
    // The threads' contexts are destroyed, but the cached forms that they made remain.
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

TEST(SharedWeights, ATransformerGivesTheSameBitsOnAllThreads) {
  for (const auto placement : {nn::NormPlacement::post, nn::NormPlacement::pre}) {
    TransformerConfig config = small_config();
    config.norm_placement = placement;
    expect_same_bits_on_all_threads<Transformer>(config, pair_losses);
  }
}

TEST(SharedWeights, AGptGivesTheSameBitsOnAllThreads) {
  for (const auto position : {nn::PositionKind::sinusoidal, nn::PositionKind::learned,
                              nn::PositionKind::rotary, nn::PositionKind::alibi}) {
    GptConfig config = small_gpt_config();
    config.position = position;
    expect_same_bits_on_all_threads<Gpt>(config, text_losses);
  }
}

TEST(SharedWeights, AnRnnGivesTheSameBitsOnAllThreads) {
  for (const auto attention : {RnnAttention::additive, RnnAttention::dot}) {
    expect_same_bits_on_all_threads<Rnn>(small_rnn(CellKind::lstm, attention), pair_losses);
  }
}

TEST(SharedWeights, CachedFormsUseNoMemoryOfTheWorkersContext) {
  CpuContext weights({.threads = 1}), worker({.threads = 1});
  const auto model = make_small<Transformer>(weights, small_config());
  pair_losses(*model, worker);
  EXPECT_EQ(worker.arena().in_use(), 0u);
}

}  // namespace
}  // namespace nunchi::testing
