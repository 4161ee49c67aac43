// Forward and backward passes of operations on the GPU, compared with the CPU.
#include "nunchi/autograd/tape.h"
#include "nunchi/ops/activation.h"
#include "nunchi/ops/decode/decode_attention.h"
#include "nunchi/ops/decode/top_tokens.h"
#include "nunchi/ops/embedding.h"
#include "nunchi/ops/feed_forward.h"
#include "nunchi/ops/gather_rows.h"
#include "nunchi/ops/linear.h"
#include "nunchi/ops/residual_norm.h"
#include "nunchi/ops/vocabulary_loss.h"
#include "tests/kernels/cuda/compare.h"

namespace nunchi::testing {
namespace {

const std::vector<std::int32_t> kSentences = {33, 1, 127, 32, 31, 1000};

// A parameter, whose gradient is f32 even if its values are bf16.
Variable parameter(ContextBase& context, DType dtype, const Shape& shape, std::uint64_t seed) {
  Variable variable(Tensor(), false);
  variable.bind(input(context, dtype, shape, seed), zeros(context, DType::f32, shape));
  return variable;
}

Variable rows(ContextBase& context, DType dtype, const Shape& shape, std::uint64_t seed) {
  return Variable(input(context, dtype, shape, seed), true);
}

// In the forward pass, rows past the count are meaningless.
Tensor real_rows(const Tensor& tensor, const Ragged& batch) { return tensor.rows(0, batch.rows); }

TEST(CudaOperations, Linear) {
  SKIP_WITHOUT_GPU();
  for (const bool relu : {false, true}) {
    expect_like_cpu(
        [&](ContextBase& context, DType dtype) {
          const Variable x = rows(context, dtype, {192, 64}, 1),
                         w = parameter(context, dtype, {136, 64}, 2),
                         b = parameter(context, dtype, {136}, 3);
          Tape tape(context);
          const Variable y = linear(x, {.weight = w, .bias = b, .relu = relu});
          tape.backward(y, input(context, dtype, {192, 136}, 4));
          return std::vector<Output>{output("y", y.value()), output("d_x", x.gradient()),
                                     output("d_w", w.gradient()), output("d_b", b.gradient())};
        },
        {.f32 = 2e-6, .bf16 = 6e-3});
  }
}

struct FeedForwardSizes {
  std::int64_t rows, width, hidden;
};

// Sizes with and without a relu mask. The last two are large enough for their fused and separate
// variants to be measured.
void expect_feed_forward_like_cpu(kernels::ActivationKind activation) {
  for (const FeedForwardSizes& s : {FeedForwardSizes{192, 64, 256},
                                    {192, 64, 136},
                                    {192, 37, 41},
                                    {1, 64, 136},
                                    {1024, 512, 1024},
                                    {2100, 384, 1536}}) {
    for (const bool biases : {true, false}) {
      SCOPED_TRACE(std::to_string(s.rows) + " rows, " + std::to_string(s.hidden) + " hidden" +
                   (biases ? ", biases" : ""));
      expect_like_cpu(
          [&](ContextBase& context, DType dtype) {
            const auto bias = [&](std::int64_t width, std::uint64_t seed) {
              return biases ? parameter(context, dtype, {width}, seed) : Variable();
            };
            const Variable x = rows(context, dtype, {s.rows, s.width}, 1);
            const Linear up{parameter(context, dtype, {s.hidden, s.width}, 2), bias(s.hidden, 3)};
            const Linear down{parameter(context, dtype, {s.width, s.hidden}, 4), bias(s.width, 5)};
            std::vector<Output> outputs;
            // Twice: the second pass reuses the plans and adds to the gradients of parameters.
            for (int i = 0; i < 2; ++i) {
              Tape tape(context);
              const Variable y = feed_forward(x, {up, down, activation});
              tape.backward(y, input(context, dtype, {s.rows, s.width}, 6));
              outputs.push_back(output("y", y.value()));
            }
            outputs.push_back(
                output("y, unrecorded", feed_forward(x, {up, down, activation}).value()));
            outputs.push_back(output("d_x", x.gradient()));
            for (const Linear& layer : {up, down}) {
              outputs.push_back(output("d_w", layer.weight.gradient()));
              if (biases) outputs.push_back(output("d_b", layer.bias.gradient()));
            }
            return outputs;
          },
          {.f32 = 5e-6, .bf16 = 2e-2});
    }
  }
}

TEST(CudaOperations, FeedForward) {
  SKIP_WITHOUT_GPU();
  expect_feed_forward_like_cpu(kernels::ActivationKind::relu);
}

TEST(CudaOperations, FeedForwardWithGelu) {
  SKIP_WITHOUT_GPU();
  expect_feed_forward_like_cpu(kernels::ActivationKind::gelu_tanh);
}

// Whichever variant is faster, each pass either fuses gelu with its product or runs it separately.
TEST(CudaOperations, AProfileShowsWhetherGeluIsFused) {
  SKIP_WITHOUT_GPU();
  CudaContext context;
  const Variable x = rows(context, DType::bf16, {4096, 512}, 1);
  const Linear up{parameter(context, DType::bf16, {2048, 512}, 2),
                  parameter(context, DType::bf16, {2048}, 3)};
  const Linear down{parameter(context, DType::bf16, {512, 2048}, 4),
                    parameter(context, DType::bf16, {512}, 5)};
  Profile profile;
  context.set_profile(&profile);
  {
    Tape tape(context);
    const Variable y = feed_forward(x, {up, down, kernels::ActivationKind::gelu_tanh});
    tape.backward(y, input(context, DType::bf16, {4096, 512}, 6));
  }
  context.set_profile(nullptr);
  const auto& entries = profile.entries();
  EXPECT_EQ(entries.count("linear+gelu") + entries.count("activation"), 1u);
  EXPECT_EQ(entries.count("linear_backward_input+gelu") +
                entries.count("linear_backward_input+gelu+bias") +
                entries.count("activation_backward"),
            1u);
}

TEST(CudaOperations, ResidualNorm) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t width : {8, 64, 264, 512, 600, 768, 1024, 2048, 37, 2056}) {
    for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
      expect_like_cpu(
          [&](ContextBase& context, DType dtype) {
            const Ragged batch = make_ragged(context, kSentences);
            const Shape shape{batch.capacity, width};
            const Variable x = rows(context, dtype, shape, 1), y = rows(context, dtype, shape, 2);
            const Norm norm{.kind = kind,
                            .gamma = parameter(context, dtype, {width}, 3),
                            .beta = kind == NormKind::layer ? parameter(context, dtype, {width}, 4)
                                                            : Variable()};
            const ModeScope scope(context, Mode::training);
            Tape tape(context);
            const auto [sum, out] =
                residual_norm(x, y, batch, norm, {.probability = 0.1f, .operation_id = 3});
            const auto [second_sum, second_out] = residual_norm(sum, out, batch, norm);
            tape.backward(second_out, input(context, dtype, shape, 5));
            std::vector<Output> outputs{output("sum", real_rows(sum.value(), batch)),
                                        output("out", real_rows(out.value(), batch)),
                                        output("second_out", real_rows(second_out.value(), batch)),
                                        output("d_x", x.gradient()),
                                        output("d_y", y.gradient()),
                                        output("d_gamma", norm.gamma.gradient())};
            if (norm.beta.defined()) outputs.push_back(output("d_beta", norm.beta.gradient()));
            return outputs;
          },
          {.f32 = 5e-6, .bf16 = 2e-2});
    }
  }
}

TEST(CudaOperations, Activations) {
  SKIP_WITHOUT_GPU();
  for (const ActivationKind kind :
       {ActivationKind::none, ActivationKind::relu, ActivationKind::gelu, ActivationKind::gelu_tanh,
        ActivationKind::swiglu, ActivationKind::tanh, ActivationKind::geglu}) {
    for (const std::int64_t width : {64, 74}) {
      expect_like_cpu(
          [&](ContextBase& context, DType dtype) {
            const Ragged batch = make_ragged(context, kSentences);
            const Variable x = rows(context, dtype, {batch.capacity, width}, 1);
            const ModeScope scope(context, Mode::training);
            Tape tape(context);
            const Variable y = activation(x, batch, kind, {.probability = 0.2f, .operation_id = 2});
            tape.backward(y, input(context, dtype, y.value().shape(), 2));
            return std::vector<Output>{output("y", real_rows(y.value(), batch)),
                                       output("d_x", x.gradient())};
          },
          {.f32 = 2e-6, .bf16 = 6e-3});
    }
  }
}

TEST(CudaOperations, Embedding) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t width : {64, 37}) {
    expect_like_cpu(
        [&](ContextBase& context, DType dtype) {
          const Ragged batch = make_ragged(context, kSentences);
          std::vector<std::int32_t> tokens(static_cast<std::size_t>(batch.capacity));
          for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int>(i * i % 101);
          const Tensor ids = from_host(context, tokens, {batch.capacity});
          const Variable table = parameter(context, dtype, {101, width}, 1),
                         positions = parameter(context, dtype, {1000, width}, 2);
          const ModeScope scope(context, Mode::training);
          Tape tape(context);
          const Variable y = embedding(ids, batch,
                                       {.table = table,
                                        .scale = 3,
                                        .positions = positions,
                                        .dropout = {.probability = 0.1f, .operation_id = 5}});
          tape.backward(y, input(context, dtype, y.value().shape(), 3));
          return std::vector<Output>{output("y", real_rows(y.value(), batch)),
                                     output("d_table", table.gradient()),
                                     output("d_positions", positions.gradient())};
        },
        {.f32 = 3e-6, .bf16 = 6e-3});
  }
}

TEST(CudaOperations, GatherRows) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t width : {64, 37}) {
    expect_like_cpu(
        [&](ContextBase& context, DType dtype) {
          const Ragged batch = make_ragged(context, kSentences);
          const Ragged selected = make_ragged(context, std::vector<std::int32_t>{40, 0, 61});
          std::vector<std::int32_t> index(static_cast<std::size_t>(selected.capacity), 0);
          for (std::size_t i = 0; i < 101; ++i) index[i] = static_cast<std::int32_t>(i * 37 % 1201);
          const Variable x = rows(context, dtype, {batch.capacity, width}, 1),
                         w = parameter(context, dtype, {width, width}, 2);
          Tape tape(context);
          const Variable y = gather_rows(linear(x, {.weight = w}), selected,
                                         from_host(context, index, {selected.capacity}));
          // Gradients past the count are zero by contract.
          const Tensor d_y = zeros(context, dtype, y.value().shape());
          scatter_rows(input(context, dtype, {101, width}, 3),
                       make_ragged(context, std::vector<std::int32_t>{101}), {}, d_y);
          tape.backward(y, d_y);
          return std::vector<Output>{output("y", y.value()), output("d_x", x.gradient()),
                                     output("d_w", w.gradient())};
        },
        {.f32 = 2e-6, .bf16 = 6e-3});
  }
}

// For vocabularies and for small sets of labels.
TEST(CudaOperations, VocabularyLossWithABias) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t vocabulary : {2, 3, 8, 1000, 1001}) {
    for (const std::vector<std::int32_t>& sentences :
         {kSentences, std::vector<std::int32_t>{1, 1, 1}}) {
      expect_like_cpu(
          [&](ContextBase& context, DType dtype) {
            const Ragged batch = make_ragged(context, sentences);
            std::vector<std::int32_t> labels(static_cast<std::size_t>(batch.capacity));
            for (std::size_t i = 0; i < labels.size(); ++i) {
              labels[i] = static_cast<std::int32_t>(i * 7 % static_cast<std::size_t>(vocabulary));
            }
            const Variable h = rows(context, dtype, {batch.capacity, 64}, 1),
                           w = parameter(context, dtype, {vocabulary, 64}, 2),
                           b = parameter(context, dtype, {vocabulary}, 3);
            Tape tape(context);
            const Linear projection{.weight = w, .bias = b};
            const VocabularyLoss loss =
                vocabulary_loss(h, projection, from_host(context, labels, {batch.capacity}), batch,
                                {.smoothing = 0.1, .chunk = 500});
            tape.backward(loss.total);
            return std::vector<Output>{output("total", loss.total.value()),
                                       output("tokens", loss.tokens), output("d_h", h.gradient()),
                                       output("d_w", w.gradient()), output("d_b", b.gradient())};
          },
          {.f32 = 5e-6, .bf16 = 2e-2});
    }
  }
}

TEST(CudaOperations, TopTokens) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t vocabulary : {2, 3, 1001}) {
    expect_like_cpu(
        [&](ContextBase& context, DType) {
          // In f32 on both devices: rounding to bf16 would create ties.
          const TopTokens top = top_tokens(input(context, DType::f32, {65, vocabulary}, 1), 2);
          return std::vector<Output>{output("ids", top.ids), output("log_probs", top.log_probs)};
        },
        {.f32 = 5e-6}, {DType::f32});
  }
}

TEST(CudaOperations, VocabularyLoss) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t vocabulary : {1000, 1001}) {
    expect_like_cpu(
        [&](ContextBase& context, DType dtype) {
          const Ragged batch = make_ragged(context, kSentences);
          std::vector<std::int32_t> labels(static_cast<std::size_t>(batch.capacity));
          for (std::size_t i = 0; i < labels.size(); ++i) {
            labels[i] = static_cast<std::int32_t>(i * 7 % static_cast<std::size_t>(vocabulary));
          }
          const Variable h = rows(context, dtype, {batch.capacity, 64}, 1),
                         w = parameter(context, dtype, {vocabulary, 64}, 2);
          Tape tape(context);
          const VocabularyLoss loss =
              vocabulary_loss(h, w, from_host(context, labels, {batch.capacity}), batch,
                              {.smoothing = 0.1, .chunk = 500});
          tape.backward(loss.total);
          return std::vector<Output>{output("total", loss.total.value()),
                                     output("tokens", loss.tokens), output("d_h", h.gradient()),
                                     output("d_w", w.gradient())};
        },
        {.f32 = 5e-6, .bf16 = 2e-2});
  }
}

}  // namespace
}  // namespace nunchi::testing
