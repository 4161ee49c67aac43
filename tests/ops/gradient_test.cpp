// Every operation's gradient against central differences in f64.
#include "tests/gradient_check.h"

#include "nunchi/ops/activation.h"
#include "nunchi/ops/additive_attention.h"
#include "nunchi/ops/attention.h"
#include "nunchi/ops/embedding.h"
#include "nunchi/ops/feed_forward.h"
#include "nunchi/ops/gather_rows.h"
#include "nunchi/ops/linear.h"
#include "nunchi/ops/linear_sum.h"
#include "nunchi/ops/residual_norm.h"
#include "nunchi/ops/rotary.h"
#include "nunchi/ops/scale.h"
#include "nunchi/ops/vocabulary_loss.h"

namespace nunchi::testing {
namespace {

class OpGradients : public ::testing::Test {
 protected:
  OpGradients() {
    context_.set_random_key({.seed = 7, .step = 3});
    context_.arena().poison();
  }
  CpuContext context_{CpuOptions{.threads = 2, .split_small_work = true}};
  // Nine rows with a capacity of sixteen: rows past the count must not matter.
  const std::vector<std::int32_t> lengths_ = {4, 1, 4};
  const Ragged batch_ = make_ragged(context_, lengths_);
  const Dropout dropout_{.probability = 0.3f, .operation_id = 5};
};

TEST_F(OpGradients, Linear) {
  for (const bool relu : {false, true}) {
    const Leaf x = leaf(context_, "x", {16, 5}, 1), w = leaf(context_, "w", {7, 5}, 2),
               b = leaf(context_, "b", {7}, 3);
    expect_gradients(context_, {x, w, b}, 16, [&] {
      return linear(x.variable, {.weight = w.variable, .bias = b.variable, .relu = relu});
    });
  }
}

TEST_F(OpGradients, LinearWithoutBias) {
  const Leaf x = leaf(context_, "x", {4, 3}, 1), w = leaf(context_, "w", {2, 3}, 2);
  expect_gradients(context_, {x, w}, 4, [&] { return linear(x.variable, {.weight = w.variable}); });
}

TEST_F(OpGradients, FeedForward) {
  for (const ActivationKind kind : {ActivationKind::relu, ActivationKind::gelu_tanh}) {
    const Leaf x = leaf(context_, "x", {16, 5}, 1), up = leaf(context_, "up", {11, 5}, 2),
               b = leaf(context_, "b", {11}, 3), down = leaf(context_, "down", {7, 11}, 4),
               c = leaf(context_, "c", {7}, 5);
    expect_gradients(context_, {x, up, b, down, c}, 16, [&] {
      return feed_forward(x.variable,
                          {{up.variable, b.variable}, {down.variable, c.variable}, kind});
    });
  }
}

TEST_F(OpGradients, FeedForwardWithoutBiases) {
  const Leaf x = leaf(context_, "x", {16, 5}, 1), up = leaf(context_, "up", {11, 5}, 2),
             down = leaf(context_, "down", {5, 11}, 4);
  expect_gradients(context_, {x, up, down}, 16, [&] {
    FeedForward layer{{.weight = up.variable}, {.weight = down.variable}};
    const Variable hidden = feed_forward(x.variable, layer);
    layer.activation = ActivationKind::gelu_tanh;
    return feed_forward(hidden, layer);
  });
}

TEST_F(OpGradients, FeedForwardComputesOnlyWantedGradients) {
  // Only one input at a time needs a gradient.
  for (int learned = 0; learned < 5; ++learned) {
    const std::vector<Leaf> all = {leaf(context_, "x", {16, 5}, 1),
                                   leaf(context_, "up", {11, 5}, 2), leaf(context_, "b", {11}, 3),
                                   leaf(context_, "down", {7, 11}, 4), leaf(context_, "c", {7}, 5)};
    const auto input = [&](std::size_t i) {
      return static_cast<int>(i) == learned ? all[i].variable
                                            : Variable(all[i].variable.value(), false);
    };
    expect_gradients(context_, {all[static_cast<std::size_t>(learned)]}, 16, [&] {
      return feed_forward(input(0), {{input(1), input(2)}, {input(3), input(4)}});
    });
  }
}

TEST_F(OpGradients, FeedForwardEqualsTwoLinearLayersBitForBit) {
  const auto run = [&](bool fused) {
    const Leaf x = leaf(context_, "x", {16, 5}, 1), up = leaf(context_, "up", {11, 5}, 2),
               b = leaf(context_, "b", {11}, 3), down = leaf(context_, "down", {7, 11}, 4),
               c = leaf(context_, "c", {7}, 5);
    const Linear first{up.variable, b.variable, true}, second{down.variable, c.variable};
    Tape tape(context_);
    const Variable y = fused ? feed_forward(x.variable, {first, second})
                             : linear(linear(x.variable, first), second);
    tape.backward(y, random_tensor<double>(context_, {16, 7}, 6));
    std::vector<double> all = to_host<double>(y.value());
    for (const Leaf& leaf : {x, up, b, down, c}) {
      const std::vector<double> gradient = to_host<double>(leaf.variable.gradient());
      all.insert(all.end(), gradient.begin(), gradient.end());
    }
    return all;
  };
  EXPECT_TRUE(same_bits(run(true), run(false)));
}

TEST_F(OpGradients, FeedForwardWithGeluEqualsItsPartsBitForBit) {
  const Ragged batch = make_ragged(context_, std::vector<std::int32_t>{33, 31});
  ASSERT_EQ(batch.capacity, 64);
  const auto run = [&](bool fused) {
    const Leaf x = leaf(context_, "x", {64, 5}, 1), up = leaf(context_, "up", {11, 5}, 2),
               b = leaf(context_, "b", {11}, 3), down = leaf(context_, "down", {7, 11}, 4);
    const Linear first{up.variable, b.variable}, second{.weight = down.variable};
    const ActivationKind kind = ActivationKind::gelu_tanh;
    Tape tape(context_);
    const Variable y = fused
                           ? feed_forward(x.variable, {first, second, kind})
                           : linear(activation(linear(x.variable, first), batch, kind, {}), second);
    tape.backward(y, random_tensor<double>(context_, {64, 7}, 6));
    std::vector<double> all = to_host<double>(y.value());
    for (const Leaf& leaf : {x, up, b, down}) {
      const std::vector<double> gradient = to_host<double>(leaf.variable.gradient());
      all.insert(all.end(), gradient.begin(), gradient.end());
    }
    return all;
  };
  EXPECT_TRUE(same_bits(run(true), run(false)));
}

TEST_F(OpGradients, FeedForwardRejectsWrongShapes) {
  const Leaf x = leaf(context_, "x", {4, 5}, 1), up = leaf(context_, "up", {6, 5}, 2),
             down = leaf(context_, "down", {5, 7}, 3);
  const std::string message = error_of([&] {
    feed_forward(x.variable, {{up.variable}, {down.variable}});
  });
  EXPECT_NE(message.find("feed_forward"), std::string::npos) << message;
  EXPECT_NE(message.find("down"), std::string::npos) << message;
}

TEST_F(OpGradients, AnInputUsedTwiceGetsBothGradients) {
  const Leaf x = leaf(context_, "x", {16, 6}, 1), w = leaf(context_, "w", {6, 6}, 2);
  expect_gradients(context_, {x, w}, 16, [&] {
    return linear(linear(x.variable, {.weight = w.variable}), {.weight = w.variable});
  });
}

TEST_F(OpGradients, ViewsOfColumnsShareTheirParentsGradient) {
  const Leaf x = leaf(context_, "x", {16, 4}, 1), w = leaf(context_, "w", {12, 4}, 2);
  const Leaf gamma = leaf(context_, "gamma", {4}, 3), beta = leaf(context_, "beta", {4}, 4);
  expect_gradients(context_, {x, w}, 9, [&] {
    const Variable qkv = linear(x.variable, {.weight = w.variable});
    const Variable nested = qkv.columns(4, 8);
    return attention(qkv.columns(0, 4), nested.columns(0, 4), nested.columns(4, 4), batch_, batch_,
                     {.heads = 2});
  });
}

TEST_F(OpGradients, AttentionClearsTheTailOfNewGradients) {
  const std::vector<std::int32_t> lengths = {2, 7, 3};
  const Ragged memory = make_ragged(context_, lengths);
  const Leaf x = leaf(context_, "x", {16, 4}, 1), y = leaf(context_, "y", {memory.capacity, 4}, 2),
             wq = leaf(context_, "wq", {4, 4}, 3), wk = leaf(context_, "wk", {4, 4}, 4),
             wv = leaf(context_, "wv", {4, 4}, 5);
  expect_gradients(context_, {x, y, wq, wk, wv}, 9, [&] {
    return attention(linear(x.variable, {.weight = wq.variable}),
                     linear(y.variable, {.weight = wk.variable}),
                     linear(y.variable, {.weight = wv.variable}), batch_, memory, {.heads = 2});
  });
}

TEST_F(OpGradients, ASharedGradientIsCopiedBeforeItIsChanged) {
  // Without dropout the norm gives the same tensor to its residual and its branch.
  const Leaf r = leaf(context_, "r", {16, 6}, 1), x = leaf(context_, "x", {16, 5}, 2),
             w = leaf(context_, "w", {6, 5}, 3), v = leaf(context_, "v", {6, 6}, 6),
             gamma = leaf(context_, "gamma", {6}, 4), beta = leaf(context_, "beta", {6}, 5);
  const Norm norm{.gamma = gamma.variable, .beta = beta.variable};
  expect_gradients(context_, {r, x, w, v, gamma, beta}, 9, [&] {
    const Variable residual = linear(r.variable, {.weight = v.variable});
    const Variable branch = linear(x.variable, {.weight = w.variable, .relu = true});
    return residual_norm(residual, branch, batch_, norm).out;
  });
}

TEST_F(OpGradients, AViewCopiesASharedGradientBeforeItAdds) {
  const Leaf r = leaf(context_, "r", {16, 6}, 1), v = leaf(context_, "v", {6, 6}, 6),
             gamma = leaf(context_, "gamma", {6}, 4), beta = leaf(context_, "beta", {6}, 5);
  const Norm norm{.gamma = gamma.variable, .beta = beta.variable};
  expect_gradients(context_, {r, v, gamma, beta}, 9, [&] {
    const Variable residual = linear(r.variable, {.weight = v.variable});
    const Variable branch = attention(residual.columns(0, 6), residual.columns(0, 6),
                                      residual.columns(0, 6), batch_, batch_, {.heads = 2});
    return residual_norm(residual, branch, batch_, norm).out;
  });
}

TEST_F(OpGradients, AWeightWithoutAllocatedGradientStartsFromZero) {
  const Variable x(random_tensor<double>(context_, {4, 3}, 1), true);
  const Variable w(random_tensor<double>(context_, {2, 3}, 2), true);
  Tape tape(context_);
  const Variable y = linear(x, {.weight = w});
  tape.backward(y, random_tensor<double>(context_, {4, 2}, 3));
  for (const double value : to_host<double>(w.gradient())) EXPECT_TRUE(std::isfinite(value));
}

TEST_F(OpGradients, BackwardRejectsWrongShapesAndViews) {
  const Leaf x = leaf(context_, "x", {4, 4}, 1), w = leaf(context_, "w", {4, 4}, 2);
  Tape tape(context_);
  const Variable y = linear(x.variable, {.weight = w.variable});
  EXPECT_NE(
      error_of([&] { tape.backward(y, zeros(context_, DType::f64, {1})); }).find("does not fit"),
      std::string::npos);
  EXPECT_NE(error_of([&] {
              tape.backward(y.columns(0, 2), zeros(context_, DType::f64, {4, 2}));
            }).find("view"),
            std::string::npos);
}

TEST_F(OpGradients, ActivationsWithAndWithoutDropout) {
  for (const ActivationKind kind :
       {ActivationKind::relu, ActivationKind::gelu, ActivationKind::gelu_tanh,
        ActivationKind::swiglu, ActivationKind::tanh, ActivationKind::geglu}) {
    for (const float probability : {0.0f, 0.3f}) {
      const Leaf x = leaf(context_, "x", {16, 6}, 1, 3);
      expect_gradients(context_, {x}, 9, [&] {
        return activation(x.variable, batch_, kind,
                          {.probability = probability, .operation_id = 2});
      });
    }
  }
}

TEST_F(OpGradients, ResidualNorm) {
  for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
    for (const float probability : {0.0f, 0.3f}) {
      const Leaf x = leaf(context_, "x", {16, 6}, 1), y = leaf(context_, "y", {16, 6}, 2),
                 gamma = leaf(context_, "gamma", {6}, 3), beta = leaf(context_, "beta", {6}, 4);
      const Norm norm{.kind = kind,
                      .gamma = gamma.variable,
                      .beta = kind == NormKind::layer ? beta.variable : Variable()};
      const std::vector<Leaf> leaves = kind == NormKind::layer
                                           ? std::vector<Leaf>{x, y, gamma, beta}
                                           : std::vector<Leaf>{x, y, gamma};
      const Dropout dropout{.probability = probability, .operation_id = 4};
      expect_gradients(context_, leaves, 9, [&] {
        return residual_norm(x.variable, y.variable, batch_, norm, dropout).out;
      });
    }
  }
}

TEST_F(OpGradients, ResidualNormWithReusedSum) {
  // As in pre-norm: the sum is the next residual, its norm is the input of the next branch.
  const Leaf x = leaf(context_, "x", {16, 6}, 1), y = leaf(context_, "y", {16, 6}, 2),
             gamma = leaf(context_, "gamma", {6}, 3), beta = leaf(context_, "beta", {6}, 4);
  const Norm norm{.gamma = gamma.variable, .beta = beta.variable};
  expect_gradients(context_, {x, y, gamma, beta}, 9, [&] {
    const auto [sum, out] = residual_norm(x.variable, y.variable, batch_, norm, dropout_);
    return residual_norm(sum, out, batch_, norm, {}).out;
  });
}

TEST_F(OpGradients, NormWithoutBranch) {
  const Leaf x = leaf(context_, "x", {16, 5}, 1), gamma = leaf(context_, "gamma", {5}, 3),
             beta = leaf(context_, "beta", {5}, 4);
  const Norm norm{.gamma = gamma.variable, .beta = beta.variable};
  expect_gradients(context_, {x, gamma, beta}, 9,
                   [&] { return residual_norm(x.variable, {}, batch_, norm).out; });
}

TEST_F(OpGradients, EmbeddingWithLearnedPositions) {
  const std::vector<std::int32_t> ids = {3, 0, 3, 2, 1, 4, 4, 3, 0, 0, 0, 0, 0, 0, 0, 0};
  const Tensor tokens = from_host(context_, ids, {16});
  const Leaf table = leaf(context_, "table", {5, 6}, 1), positions = leaf(context_, "p", {4, 6}, 2);
  expect_gradients(context_, {table, positions}, 9, [&] {
    return embedding(tokens, batch_,
                     {.table = table.variable,
                      .scale = 2.5,
                      .positions = positions.variable,
                      .dropout = dropout_});
  });
}

// Checks attention with any options; `keys` may be a different batch than `queries`.
void check_attention(CpuContext& context, const Ragged& queries, const Ragged& keys,
                     AttentionOptions options, Leaf table = {}) {
  const std::int64_t kv_heads = options.kv_heads > 0 ? options.kv_heads : options.heads;
  const Leaf q = leaf(context, "q", {queries.capacity, 3 * options.heads}, 1, 2),
             k = leaf(context, "k", {keys.capacity, 3 * kv_heads}, 2, 2),
             v = leaf(context, "v", {keys.capacity, 3 * kv_heads}, 3);
  std::vector<Leaf> leaves = {q, k, v};
  if (table.variable.defined()) leaves.push_back(table);
  expect_gradients(context, leaves, queries.rows, [&] {
    return attention(q.variable, k.variable, v.variable, queries, keys, options);
  });
}

TEST_F(OpGradients, SelfAttention) {
  check_attention(context_, batch_, batch_, {.heads = 2});
  check_attention(context_, batch_, batch_, {.heads = 2, .causal = true});
  check_attention(context_, batch_, batch_, {.heads = 2, .causal = true, .dropout = dropout_});
}

TEST_F(OpGradients, CrossAttentionWithGroupedHeads) {
  const std::vector<std::int32_t> lengths = {2, 7, 3};
  const Ragged memory = make_ragged(context_, lengths);
  check_attention(context_, batch_, memory, {.heads = 4, .kv_heads = 2, .dropout = dropout_});
}

TEST_F(OpGradients, AttentionWithSlopes) {
  const Tensor slopes = from_host(context_, std::vector<double>{0.5, 0.125}, {2});
  check_attention(
      context_, batch_, batch_,
      {.heads = 2, .causal = true, .bias = {.kind = ScoreBias::Kind::slopes, .slopes = slopes}});
}

TEST_F(OpGradients, AttentionWithBucketsAndTheirTable) {
  for (const bool bidirectional : {false, true}) {
    const Leaf table = leaf(context_, "table", {8, 2}, 9);
    check_attention(context_, batch_, batch_,
                    {.heads = 2,
                     .causal = !bidirectional,
                     .bias = {.kind = ScoreBias::Kind::buckets,
                              .table = table.variable,
                              .max_distance = 6,
                              .bidirectional = bidirectional}},
                    table);
  }
}

TEST_F(OpGradients, AdditiveAttention) {
  const std::vector<std::int32_t> lengths = {2, 7, 3};
  const Ragged memory = make_ragged(context_, lengths);
  const Leaf q = leaf(context_, "q", {batch_.capacity, 5}, 1, 2),
             k = leaf(context_, "k", {memory.capacity, 5}, 2, 2),
             v = leaf(context_, "v", {memory.capacity, 4}, 3),
             scorer = leaf(context_, "scorer", {5}, 4, 2);
  expect_gradients(context_, {q, k, v, scorer}, batch_.rows, [&] {
    return additive_attention({q.variable, k.variable, v.variable, scorer.variable}, batch_, memory)
        .out;
  });
}

// As in a model: keys are computed from the values, whose gradient is the sum of both.
TEST_F(OpGradients, AdditiveAttentionOverKeysComputedFromItsValues) {
  const Leaf x = leaf(context_, "x", {batch_.capacity, 5}, 1), w = leaf(context_, "w", {5, 5}, 2),
             scorer = leaf(context_, "scorer", {5}, 4, 2);
  expect_gradients(context_, {x, w, scorer}, batch_.rows, [&] {
    const Variable k = linear(x.variable, {.weight = w.variable});
    const Variable q = linear(k, {.weight = w.variable});
    return additive_attention({q, k, x.variable, scorer.variable}, batch_, batch_).out;
  });
}

TEST_F(OpGradients, LinearSum) {
  const Leaf x = leaf(context_, "x", {16, 5}, 1), y = leaf(context_, "y", {16, 3}, 2),
             a = leaf(context_, "a", {7, 5}, 3), b = leaf(context_, "b", {7, 3}, 4),
             bias = leaf(context_, "bias", {7}, 5);
  expect_gradients(context_, {x, y, a, b, bias}, 16, [&] {
    return linear_sum(x.variable, y.variable, {a.variable, b.variable, bias.variable});
  });
}

TEST_F(OpGradients, LinearSumRejectsWrongShapes) {
  const Leaf x = leaf(context_, "x", {4, 5}, 1), w = leaf(context_, "w", {7, 5}, 2),
             other = leaf(context_, "other", {6, 5}, 3), bias = leaf(context_, "bias", {7}, 4);
  const std::string message = error_of([&] {
    linear_sum(x.variable, x.variable, {w.variable, other.variable, bias.variable});
  });
  EXPECT_NE(message.find("linear_sum: the second weight"), std::string::npos) << message;
}

TEST_F(OpGradients, AttentionWithClippedDistancesAndTheirTable) {
  for (const bool bidirectional : {false, true}) {
    const Leaf table = leaf(context_, "table", {bidirectional ? 5 : 3, 2}, 9);
    check_attention(context_, batch_, batch_,
                    {.heads = 2,
                     .causal = !bidirectional,
                     .bias = {.kind = ScoreBias::Kind::buckets,
                              .table = table.variable,
                              .max_distance = 2,
                              .bidirectional = bidirectional,
                              .clipped = true}},
                    table);
  }
}

// The first two of three heads are rotated in place, in the memory of a product.
TEST_F(OpGradients, Rotary) {
  const Leaf x = leaf(context_, "x", {16, 5}, 1), w = leaf(context_, "w", {12, 5}, 2);
  const Rotary rotation{.heads = 2, .table = random_tensor<double>(context_, {4, 4}, 3)};
  expect_gradients(context_, {x, w}, 9, [&] {
    return rotary(linear(x.variable, {.weight = w.variable}), batch_, rotation);
  });
}

TEST_F(OpGradients, RotaryUnderViewsOfColumns) {
  const Leaf x = leaf(context_, "x", {16, 5}, 1), w = leaf(context_, "w", {12, 5}, 2);
  const Rotary rotation{.heads = 2, .table = random_tensor<double>(context_, {4, 4}, 3)};
  expect_gradients(context_, {x, w}, 9, [&] {
    const Variable qkv = rotary(linear(x.variable, {.weight = w.variable}), batch_, rotation);
    return attention(qkv.columns(0, 4), qkv.columns(4, 4), qkv.columns(8, 4), batch_, batch_,
                     {.heads = 1, .causal = true});
  });
}

TEST_F(OpGradients, RotaryRejectsWrongShapes) {
  const Leaf x = leaf(context_, "x", {16, 8}, 1);
  const auto refused = [&](int heads, const Shape& table) {
    return error_of([&] {
      rotary(x.variable, batch_, {.heads = heads, .table = zeros(context_, DType::f64, table)});
    });
  };
  EXPECT_NE(refused(1, {4, 5}).find("cannot be split into pairs"), std::string::npos);
  EXPECT_NE(refused(3, {4, 4}).find("do not hold 3 heads"), std::string::npos);
  EXPECT_NE(refused(2, {3, 4}).find("too short for sentences of 4 tokens"), std::string::npos);
}

TEST_F(OpGradients, Scale) {
  const Leaf x = leaf(context_, "x", {16, 5}, 1);
  expect_gradients(context_, {x}, 16, [&] { return scale(x.variable, 0.3); });
}

TEST_F(OpGradients, GatherRows) {
  const std::vector<std::int32_t> lengths = {2, 0, 3};
  const Ragged selected = make_ragged(context_, lengths);
  const Tensor index = from_host(context_, std::vector<std::int32_t>{6, 0, 3, 8, 1, 0, 0, 0}, {8});
  const Leaf alone = leaf(context_, "alone", {16, 5}, 1);
  expect_gradients(context_, {alone}, 5,
                   [&] { return gather_rows(alone.variable, selected, index); });
  // Rows of a computed tensor whose input has another use.
  const Leaf x = leaf(context_, "x", {16, 5}, 1), w = leaf(context_, "w", {5, 5}, 2),
             gamma = leaf(context_, "gamma", {5}, 3);
  expect_gradients(context_, {x, w, gamma}, 5, [&] {
    const Variable y = linear(x.variable, {.weight = w.variable});
    return residual_norm(gather_rows(y, selected, index), gather_rows(x.variable, selected, index),
                         selected, {.kind = NormKind::rms, .gamma = gamma.variable})
        .out;
  });
}

TEST_F(OpGradients, GatherRowsClearsTheTail) {
  const Ragged selected = make_ragged(context_, std::vector<std::int32_t>{2, 1});
  const Leaf x = leaf(context_, "x", {4, 2}, 1);
  const Tensor index = from_host(context_, std::vector<std::int32_t>{3, 1, 0, 0}, {4});
  const std::vector<double> from = to_host<double>(x.variable.value()),
                            found =
                                to_host<double>(gather_rows(x.variable, selected, index).value());
  EXPECT_EQ(found,
            (std::vector<double>{from[6], from[7], from[2], from[3], from[0], from[1], 0, 0}));
  EXPECT_NE(error_of([&] {
              gather_rows(x.variable, selected, index.rows(0, 2));
            }).find("gather_rows: 2 indices"),
            std::string::npos);
}

TEST_F(OpGradients, VocabularyLossOverChunks) {
  const std::vector<std::int32_t> labels = {3, 0, 3, 2, 1, 4, 4, 3, 0, 0, 0, 0, 0, 0, 0, 0};
  const Tensor targets = from_host(context_, labels, {16});
  for (const std::int64_t chunk : {3, 5, 64}) {
    const Leaf h = leaf(context_, "h", {16, 6}, 1), w = leaf(context_, "w", {5, 6}, 2);
    const auto loss = [&] {
      return vocabulary_loss(h.variable, w.variable, targets, batch_,
                             {.smoothing = 0.1, .chunk = chunk});
    };
    {
      Tape tape(context_);
      tape.backward(loss().total);
    }
    for (const Leaf& leaf : {h, w}) {
      const std::vector<double> gradient = to_host<double>(leaf.variable.gradient());
      const auto value = [&] { return to_host<double>(loss().total.value())[0]; };
      EXPECT_LE(relative_error(gradient, numerical_gradient(leaf, value)), 1e-6) << leaf.name;
    }
  }
}

TEST_F(OpGradients, VocabularyLossWithABias) {
  const std::vector<std::int32_t> labels = {1, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0};
  const Tensor targets = from_host(context_, labels, {16});
  for (const std::int64_t vocabulary : {2, 5}) {
    const Leaf h = leaf(context_, "h", {16, 6}, 1), w = leaf(context_, "w", {vocabulary, 6}, 2),
               b = leaf(context_, "b", {vocabulary}, 3);
    const auto loss = [&] {
      const Linear projection{.weight = w.variable, .bias = b.variable};
      return vocabulary_loss(h.variable, projection, targets, batch_,
                             {.smoothing = 0.1, .chunk = 5});
    };
    {
      Tape tape(context_);
      tape.backward(loss().total);
    }
    for (const Leaf& leaf : {h, w, b}) {
      const std::vector<double> gradient = to_host<double>(leaf.variable.gradient());
      const auto value = [&] { return to_host<double>(loss().total.value())[0]; };
      EXPECT_LE(relative_error(gradient, numerical_gradient(leaf, value)), 1e-6) << leaf.name;
    }
  }
}

}  // namespace
}  // namespace nunchi::testing
