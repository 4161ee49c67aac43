// Properties of every family with every kind of position.
#include "tests/models/every_model.h"

#include <algorithm>
#include <numeric>

#include "nunchi/kernels/product.h"
#include "nunchi/models/format/folder.h"
#include "nunchi/trace/trace.h"
#include "tests/files.h"
#include "tests/gradient_check.h"

namespace nunchi::testing {
namespace {

TEST_P(EveryModel, GradientsAgreeWithCentralDifferences) {
  ModelSize size = kTiny;
  for (const float dropout : {0.0f, 0.2f}) {
    size.dropout = dropout;
    for (const NamedModel& named : models_of(GetParam(), size)) {
      SCOPED_TRACE(named.name);
      CpuContext context({.threads = 1});
      context.arena().poison();
      const AnyModel model(context, named, size, {.dtype = DType::f64, .gradients = true});
      const std::int32_t shortest = model.has_source() ? 0 : 2;
      const Sentences sentences = pairs_of({3, 1, 5}, {4, shortest, 6}, size.vocabulary);
      expect_gradients(context, model.parameters(),
                       [&] { return model.loss(sentences, {.smoothing = 0.1, .chunk = 4}).total; });
    }
  }
}

// The scores of the first `rows` rows of the batch.
std::vector<double> first_rows(const std::vector<double>& scores, std::size_t rows) {
  return {scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(rows * 37)};
}

TEST_P(EveryModel, AFutureTokenChangesNoEarlierScore) {
  CpuContext context({.threads = 2});
  context.arena().poison();
  for (const NamedModel& named : models_of(GetParam())) {
    SCOPED_TRACE(named.name);
    const AnyModel model(context, named);
    Sentences sentences = pairs_of({9, 70}, {5, 130}, 37);
    const std::vector<double> before = to_host_f64(model.scores(sentences));
    const std::size_t first = model.rows_of(sentences.targets[0]);  // of the second sentence
    for (const std::size_t changed : {0, 1, 63, 64, 100, 129}) {
      std::int32_t& token = sentences.targets[1][changed];
      const std::int32_t original = std::exchange(token, (token + 1) % 37);
      const std::vector<double> after = to_host_f64(model.scores(sentences));
      token = original;
      // A bidirectional model reads the token in every row of its text, but in no other text.
      const std::size_t row = first + (model.generates() ? changed + model.has_source() : 0);
      EXPECT_EQ(first_rows(before, row), first_rows(after, row)) << "token " << changed;
      EXPECT_NE(first_rows(before, row + 1), first_rows(after, row + 1))
          << "token " << changed << " must matter from the row that reads it on";
    }
  }
}

// A sentence gets the same scores, bit for bit, alone and in batches of several sizes and orders.
void expect_same_in_any_batch(const AnyModel& model, std::int64_t vocabulary) {
  constexpr std::size_t kSentences = 24;
  std::vector<std::int32_t> source_lengths, target_lengths;
  for (int b = 0; b < static_cast<int>(kSentences); ++b) {
    source_lengths.push_back(1 + (b * 7) % 40);
    target_lengths.push_back((model.has_source() ? 0 : 1) + (b * 11) % 35);
  }
  const Sentences all = pairs_of(source_lengths, target_lengths, vocabulary);
  std::vector<std::vector<float>> alone;
  for (std::size_t b = 0; b < kSentences; ++b) {
    alone.push_back(to_host<float>(model.scores(subset_of(all, {b}))));
  }
  for (const std::size_t size : {2, 7, 24}) {
    for (std::size_t first = 0; first < kSentences; first += size) {
      std::vector<std::size_t> chosen;
      std::vector<float> expected;
      for (std::size_t i = first; i < std::min(first + size, kSentences); ++i) {
        const std::size_t b = (i * 7 + size) % kSentences;
        chosen.push_back(b);
        expected.insert(expected.end(), alone[b].begin(), alone[b].end());
      }
      const std::vector<float> together = to_host<float>(model.scores(subset_of(all, chosen)));
      ASSERT_TRUE(same_bits(together, expected))
          << "in batches of " << size << ", off by " << largest_difference(together, expected);
    }
  }
}

// A model with one layer of realistic sizes, which uses the same GEMM kernels as real models.
ModelConfig realistic_config(std::string_view family) {
  const auto encoder_decoder = [](auto config) {
    config.encoder_layers = config.decoder_layers = 1;
    return ModelConfig(config);
  };
  const auto single_stack = [](auto config) {
    config.layers = 1;
    return ModelConfig(config);
  };
  if (family == "transformer") return encoder_decoder(TransformerConfig());
  if (family == "t5") return encoder_decoder(t5_config());
  if (family == "rnn") return encoder_decoder(preset_of<RnnConfig>("rnn-small", 1000));
  if (family == "gpt") return single_stack(preset_of<GptConfig>("small", 1000));
  return single_stack(preset_of<BertConfig>("bert-small", 1000));
}

TEST_P(EveryModel, ASentenceGetsTheSameScoresInAnyBatch) {
  if (!kernels::rows_are_independent()) {
    GTEST_SKIP() << kernels::product_library()
                 << " does not keep a row's bits when others are added";
  }
  for (const int threads : {1, 3}) {
    CpuContext context({.threads = threads, .split_small_work = true});
    for (const NamedModel& named : models_of(GetParam())) {
      SCOPED_TRACE(named.name);
      expect_same_in_any_batch(AnyModel(context, named), 37);
    }
    const NamedModel base{"realistic sizes", realistic_config(GetParam())};
    SCOPED_TRACE(base.name);
    expect_same_in_any_batch(AnyModel(context, base, {.vocabulary = 1000}), 1000);
  }
}

// The rows of the traced weights sum to 1, and weights × values is the output of the fused kernel.
// With grouped heads, several query heads share one head of values.
void expect_weights_are_used(const TapRecord& weights, const TapRecord& values,
                             const TapRecord& mixed) {
  const auto heads = static_cast<std::size_t>(weights.heads),
             width = static_cast<std::size_t>(mixed.shape[1]), head_width = width / heads,
             value_width = static_cast<std::size_t>(values.shape[1]), group = width / value_width;
  ASSERT_EQ(group * value_width, width);
  double largest_error = 0, largest_sum_error = 0;
  std::size_t first_query = 0, first_key = 0;
  for (std::size_t b = 0; b < weights.lengths.size(); ++b) {
    const auto queries = static_cast<std::size_t>(weights.lengths[b]),
               keys = static_cast<std::size_t>(weights.key_lengths[b]);
    const float* row = weights.values.data() + weights.offsets[b];
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t i = 0; i < queries; ++i, row += keys) {
        double sum = 0;
        for (std::size_t j = 0; j < keys; ++j) sum += row[j];
        largest_sum_error = std::max(largest_sum_error, std::fabs(sum - 1));
        for (std::size_t d = 0; d < head_width; ++d) {
          double expected = 0;
          for (std::size_t j = 0; j < keys; ++j) {
            expected += double{row[j]} *
                        values.values[(first_key + j) * value_width + h / group * head_width + d];
          }
          largest_error = std::max(
              largest_error,
              std::fabs(expected - mixed.values[(first_query + i) * width + h * head_width + d]));
        }
      }
    }
    first_query += queries;
    first_key += keys;
  }
  EXPECT_LE(largest_sum_error, 1e-5);
  EXPECT_LE(largest_error, 1e-5);
}

// The number of attentions that a trace records: self-attention of each layer, and cross-attention
// of each decoder layer.
std::size_t attentions_of(const Model& model) {
  if (const auto* rnn = dynamic_cast<const Rnn*>(&model)) {
    return rnn->config().as<RnnConfig>().attention == RnnAttention::none ? 0 : 1;
  }
  return model.family() == "gpt" || model.family() == "bert" ? 2 : 6;
}

TEST_P(EveryModel, TracedWeightsTimesValuesAreTheFusedOutput) {
  CpuContext context({.threads = 2});
  for (const NamedModel& named : models_of(GetParam())) {
    SCOPED_TRACE(named.name);
    const AnyModel model(context, named);
    const Sentences sentences = pairs_of({70, 1, 9}, {65, model.has_source() ? 0 : 1, 12}, 37);
    const std::vector<float> before = to_host<float>(model.scores(sentences));
    Trace trace;
    const std::vector<float> after = [&] {
      const TraceScope scope(context, trace);
      return to_host<float>(model.scores(sentences));
    }();
    EXPECT_TRUE(same_bits(before, after)) << "tracing must not change the scores";
    std::size_t attentions = 0;
    for (const TapRecord& weights : trace.records()) {
      if (weights.tap != Tap::attention_weights) continue;
      SCOPED_TRACE(weights.stack + " " + std::to_string(weights.layer) + " " + weights.part);
      const auto find = [&](Tap tap) {
        return trace.find(tap, weights.stack, weights.layer, weights.part);
      };
      // A recurrent decoder attends to the encoder's states directly.
      const TapRecord *states = trace.find(Tap::stack_output, "encoder", -1),
                      *values = GetParam() == "rnn" ? states : find(Tap::value),
                      *mixed = find(Tap::attention_context);
      ASSERT_TRUE(values != nullptr && mixed != nullptr);
      expect_weights_are_used(weights, *values, *mixed);
      ++attentions;
    }
    EXPECT_EQ(attentions, attentions_of(model.model()));
    const std::string stack = GetParam() == "bert" ? "encoder" : "decoder";
    const TapRecord* scores = trace.find(Tap::logits, stack, -1);
    ASSERT_NE(scores, nullptr);
    EXPECT_TRUE(same_bits(scores->values, after));
    EXPECT_NE(trace.find(Tap::layer_output, stack, 1), nullptr);
    EXPECT_NE(trace.find(Tap::stack_output, stack, -1), nullptr);
  }
}

TEST_P(EveryModel, LoadsAsItWasSaved) {
  CpuContext context({.threads = 2});
  for (const NamedModel& named : models_of(GetParam())) {
    SCOPED_TRACE(named.name);
    const TemporaryFolder folder;
    const AnyModel written(context, named);
    save_model(written.model(), folder / "model");
    std::unique_ptr<Model> loaded = load_model(folder / "model", context);
    EXPECT_EQ(loaded->family(), GetParam());
    EXPECT_EQ(loaded->config_json(), written.model().config_json());
    EXPECT_TRUE(same_bits(to_host<float>(loaded->parameters().weights()),
                          to_host<float>(written.parameters().weights())));
    const Sentences sentences = pairs_of({5, 9}, {7, 3}, 37);
    EXPECT_TRUE(same_bits(to_host<float>(AnyModel(context, std::move(loaded)).scores(sentences)),
                          to_host<float>(written.scores(sentences))));
  }
}

// The hypotheses of a running generation, and the sentence of each.
struct Generation {
  std::vector<std::int32_t> sentences;
  std::vector<Tokens> hypotheses;  // without <s>
};

// The scores of the token after each hypothesis, recomputed from the whole hypothesis.
std::vector<std::vector<double>> recomputed(const AnyModel& model, const Generation& generation,
                                            const std::vector<Tokens>& sources) {
  Sentences whole{.sources = {}, .targets = generation.hypotheses};
  for (const std::int32_t sentence : generation.sentences) {
    whole.sources.push_back(sources[static_cast<std::size_t>(sentence)]);
  }
  const Tensor scores = model.scores(whole);
  std::vector<std::vector<double>> last;
  std::int64_t row = -1;
  for (const Tokens& hypothesis : generation.hypotheses) {
    row += static_cast<std::int64_t>(model.rows_of(hypothesis));
    last.push_back(to_host_f64(scores.rows(row, 1)));
  }
  return last;
}

// The first step reads several tokens of each hypothesis, later steps one. Between steps,
// hypotheses are copied, dropped and reordered. `model` is in f64.
void expect_steps_equal_recomputation(const AnyModel& model, ContextBase& context,
                                      Generation generation) {
  const std::vector<Tokens> sources = sentences_of({5, 1, 9}, 37, 3);
  const auto tensor = [&](const std::vector<std::int32_t>& values) {
    return from_host(context, values, {static_cast<std::int64_t>(values.size())});
  };
  std::vector<std::int32_t> newest, offsets{0}, parents;
  std::vector<std::int64_t> prompts;
  for (const Tokens& hypothesis : generation.hypotheses) {
    if (model.has_source()) newest.push_back(kTokens.start);
    newest.insert(newest.end(), hypothesis.begin(), hypothesis.end());
    offsets.push_back(static_cast<std::int32_t>(newest.size()));
    prompts.push_back(offsets.back() - offsets[offsets.size() - 2]);
  }
  constexpr std::int64_t kMaxHypotheses = 7;
  const auto state = model.started_state(sources, prompts, kMaxHypotheses);
  std::int64_t first_parent = state->cache.next_first_row();
  for (int step = 0; step < 20; ++step) {
    const auto count = static_cast<std::int64_t>(newest.size());
    newest.resize(static_cast<std::size_t>(nn::decode_capacity(count)), 0);
    nn::StepTokens tokens{.hypotheses = static_cast<std::int64_t>(generation.hypotheses.size()),
                          .tokens = count,
                          .ids = tensor(newest),
                          .parents = step > 0 ? tensor(parents) : Tensor(),
                          .units = tensor(generation.sentences),
                          .sources = tensor(generation.sentences)};
    if (step == 0 && *std::ranges::max_element(prompts) > 1) tokens.offsets = tensor(offsets);
    const Tensor scores = model.generator().next_scores(model.generator().step(*state, tokens));
    const auto expected = recomputed(model, generation, sources);
    for (std::size_t r = 0; r < expected.size(); ++r) {
      ASSERT_LT(largest_difference(to_host_f64(scores.rows(static_cast<std::int64_t>(r), 1)),
                                   expected[r]),
                1e-11)
          << "step " << step << ", row " << r;
    }
    // The next step has one to seven hypotheses, each with a random parent.
    const auto draws = random_values<double>(16, 100 + static_cast<std::uint64_t>(step));
    const auto draw = [&](std::size_t i, std::size_t below) {
      return static_cast<std::size_t>((draws[i] + 1) / 2 * static_cast<double>(below));
    };
    Generation next;
    newest.clear();
    parents.clear();
    for (std::size_t i = 0, next_count = 1 + draw(15, 7); i < next_count; ++i) {
      const std::size_t parent = draw(i, generation.hypotheses.size());
      parents.push_back(
          static_cast<std::int32_t>(first_parent + static_cast<std::int64_t>(parent)));
      newest.push_back(static_cast<std::int32_t>(draw(i + 7, 37)));
      next.sentences.push_back(generation.sentences[parent]);
      next.hypotheses.push_back(generation.hypotheses[parent]);
      next.hypotheses.back().push_back(newest.back());
    }
    first_parent = 0;
    generation = std::move(next);
  }
}

TEST_P(EveryModel, CachedDecodingEqualsRecomputationAtEveryStep) {
  CpuContext context({.threads = 2});
  for (const NamedModel& named : models_of(GetParam())) {
    SCOPED_TRACE(named.name);
    const AnyModel model(context, named, {}, {.dtype = DType::f64});
    if (!model.generates()) GTEST_SKIP() << "a " << GetParam() << " does not generate";
    // First steps of one token each (<s>, or the text's first token), and of several.
    const std::int32_t first = model.has_source() ? 0 : 1;
    for (const std::vector<std::int32_t>& lengths :
         {std::vector{first, first, first}, std::vector{5, first, 70}}) {
      expect_steps_equal_recomputation(model, context, {{0, 1, 2}, sentences_of(lengths, 37, 4)});
    }
  }
}

FOR_EVERY_FAMILY(EveryModel);

}  // namespace
}  // namespace nunchi::testing
