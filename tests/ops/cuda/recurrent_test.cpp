// Forward and backward passes of recurrent layers and additive attention on the GPU, compared with
// the CPU.
#include "nunchi/ops/recurrent.h"

#include "nunchi/autograd/tape.h"
#include "nunchi/ops/additive_attention.h"
#include "nunchi/ops/linear_sum.h"
#include "tests/kernels/cuda/compare.h"

namespace nunchi::testing {
namespace {

Variable parameter(ContextBase& context, DType dtype, const Shape& shape, std::uint64_t seed,
                   double scale) {
  Variable variable(Tensor(), false);
  variable.bind(input(context, dtype, shape, seed, scale), zeros(context, DType::f32, shape));
  return variable;
}

RecurrentLayer layer_of(ContextBase& context, DType dtype, CellKind cell, std::int64_t inputs,
                        std::int64_t width, int directions) {
  const std::int64_t gates = kernels::gates_of(cell) * width;
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  RecurrentLayer layer{.cell = cell,
                       .input = {parameter(context, dtype, {directions * gates, inputs}, 1, scale),
                                 parameter(context, dtype, {directions * gates}, 2, 0.5)},
                       .hidden = {}};
  for (int d = 0; d < directions; ++d) {
    const auto seed = static_cast<std::uint64_t>(10 + 2 * d);
    layer.hidden[std::size_t(d)] = {parameter(context, dtype, {gates, width}, seed, scale),
                                    parameter(context, dtype, {gates}, seed + 1, 0.5)};
  }
  return layer;
}

void add_gradients(const RecurrentLayer& layer, std::vector<Output>& outputs) {
  outputs.push_back(output("d_input_weight", layer.input.weight.gradient()));
  outputs.push_back(output("d_input_bias", layer.input.bias.gradient()));
  for (const Linear& hidden : layer.hidden) {
    if (!hidden.weight.defined()) continue;
    outputs.push_back(output("d_hidden_weight", hidden.weight.gradient()));
    outputs.push_back(output("d_hidden_bias", hidden.bias.gradient()));
  }
}

Tensor real_rows(const Tensor& tensor, const Ragged& batch) { return tensor.rows(0, batch.rows); }

class CudaRecurrent : public ::testing::TestWithParam<CellKind> {};

// Two bidirectional layers, then a unidirectional one that starts from their last states: gradients
// flow through rows and states.
TEST_P(CudaRecurrent, ForwardAndBackward) {
  SKIP_WITHOUT_GPU();
  std::vector<std::int32_t> many;
  for (std::int32_t b = 0; b < 200; ++b) many.push_back(1 + b * 7 % 23);
  for (const std::int64_t width : {6, 40, 64}) {
    for (const std::vector<std::int32_t>& lengths :
         {std::vector<std::int32_t>{5, 1, 0, 33, 5, 12}, many}) {
      expect_like_cpu(
          [&](ContextBase& context, DType dtype) {
            const Ragged batch = make_ragged(context, lengths);
            const Shape shape{batch.capacity, 2 * width};
            const Variable x(input(context, dtype, {batch.capacity, 24}, 3), true),
                y(input(context, dtype, shape, 4), true);
            const RecurrentLayer first = layer_of(context, dtype, GetParam(), 24, width, 2),
                                 second = layer_of(context, dtype, GetParam(), 2 * width, width, 2),
                                 third =
                                     layer_of(context, dtype, GetParam(), 2 * width, 2 * width, 1);
            Tape tape(context);
            const RecurrentResult below = recurrent(x, first, batch);
            const RecurrentResult above = recurrent(below.out, second, batch);
            const RecurrentResult end = recurrent(y, third, batch, above.last);
            tape.backward(end.out, input(context, dtype, shape, 5));
            std::vector<Output> outputs = {output("below", real_rows(below.out.value(), batch)),
                                           output("above", real_rows(above.out.value(), batch)),
                                           output("last", above.last.h.value()),
                                           output("end", real_rows(end.out.value(), batch)),
                                           output("d_x", x.gradient()),
                                           output("d_y", y.gradient())};
            for (const RecurrentLayer& layer : {first, second, third}) {
              add_gradients(layer, outputs);
            }
            return outputs;
          },
          {.f32 = 1e-5, .bf16 = 5e-2});
    }
  }
}

TEST_P(CudaRecurrent, SingleSteps) {
  SKIP_WITHOUT_GPU();
  const bool lstm = GetParam() == CellKind::lstm;
  expect_like_cpu([&](ContextBase& context, DType dtype) {
    const RecurrentLayer layer = layer_of(context, dtype, GetParam(), 24, 40, 1);
    Ragged rows;
    rows.rows = 5;
    rows.capacity = 7;
    rows.count = from_host(context, std::vector<std::int32_t>{5}, {1});
    rows.row_sentence = rows.row_position =
        from_host(context, std::vector<std::int32_t>(7, 0), {7});
    const StateRows previous{input(context, dtype, {7, 40}, 20),
                             lstm ? input(context, DType::f32, {7, 40}, 21) : Tensor()};
    const StateRows next{unwritten_tensor(context, dtype, {7, 40}),
                         lstm ? unwritten_tensor(context, DType::f32, {7, 40}) : Tensor()};
    recurrent_step(input(context, dtype, {7, 24}, 22), layer, rows, previous, next);
    std::vector<Output> outputs = {output("h", next.h)};
    if (lstm) outputs.push_back(output("c", next.c.rows(0, 5)));
    return outputs;
  });
}

INSTANTIATE_TEST_SUITE_P(Cells, CudaRecurrent, ::testing::Values(CellKind::gru, CellKind::lstm),
                         [](const auto& cell) {
                           return cell.param == CellKind::lstm ? "lstm" : "gru";
                         });

TEST(CudaAdditiveAttention, ForwardAndBackward) {
  SKIP_WITHOUT_GPU();
  const std::vector<std::int32_t> query_lengths = {5, 1, 70, 12, 3},
                                  key_lengths = {33, 2, 1, 100, 7};
  for (const std::int64_t width : {6, 40, 512}) {
    expect_like_cpu(
        [&](ContextBase& context, DType dtype) {
          const Ragged queries = make_ragged(context, query_lengths),
                       keys = make_ragged(context, key_lengths);
          const Variable q(input(context, dtype, {queries.capacity, width}, 1), true),
              k(input(context, dtype, {keys.capacity, width}, 2), true),
              v(input(context, dtype, {keys.capacity, 24}, 3), true),
              scorer = parameter(context, dtype, {width}, 4, 4 / std::sqrt(double(width)));
          Tape tape(context);
          const AdditiveResult result = additive_attention({q, k, v, scorer}, queries, keys);
          tape.backward(result.out, input(context, dtype, {queries.capacity, 24}, 5));
          return std::vector<Output>{output("out", real_rows(result.out.value(), queries)),
                                     output("weights", result.weights.weights),
                                     output("d_q", q.gradient()),
                                     output("d_k", k.gradient()),
                                     output("d_v", v.gradient()),
                                     output("d_scorer", scorer.gradient())};
        },
        {.f32 = 1e-5, .bf16 = 3e-2});
  }
}

TEST(CudaAdditiveAttention, RowsOfADecodeStep) {
  SKIP_WITHOUT_GPU();
  expect_like_cpu([&](ContextBase& context, DType dtype) {
    Ragged rows;
    rows.rows = 4;
    rows.capacity = 5;
    rows.count = from_host(context, std::vector<std::int32_t>{4}, {1});
    rows.row_sentence = rows.row_position = from_host(context, std::vector<std::int32_t>(5), {5});
    const VisibleKeys keys{
        .begin = from_host(context, std::vector<std::int32_t>{0, 0, 9, 11, 0}, {5}),
        .length = from_host(context, std::vector<std::int32_t>{9, 9, 2, 40, 0}, {5}),
        .max_keys = 40};
    const Variable q(input(context, dtype, {5, 40}, 1)), k(input(context, dtype, {64, 40}, 2)),
        v(input(context, dtype, {64, 24}, 3)), scorer(input(context, dtype, {40}, 4));
    return std::vector<Output>{
        output("out", additive_decode_attention({q, k, v, scorer}, rows, keys))};
  });
}

TEST(CudaOperations, LinearSum) {
  SKIP_WITHOUT_GPU();
  expect_like_cpu(
      [&](ContextBase& context, DType dtype) {
        const Variable x(input(context, dtype, {192, 64}, 1), true),
            y(input(context, dtype, {192, 40}, 2), true);
        const LinearSum sum{parameter(context, dtype, {136, 64}, 3, 1),
                            parameter(context, dtype, {136, 40}, 4, 1),
                            parameter(context, dtype, {136}, 5, 1)};
        Tape tape(context);
        const Variable out = linear_sum(x, y, sum);
        tape.backward(out, input(context, dtype, {192, 136}, 6));
        return std::vector<Output>{output("out", out.value()),
                                   output("d_x", x.gradient()),
                                   output("d_y", y.gradient()),
                                   output("d_first", sum.first_weight.gradient()),
                                   output("d_second", sum.second_weight.gradient()),
                                   output("d_bias", sum.bias.gradient())};
      },
      {.f32 = 2e-6, .bf16 = 1e-2});
}

}  // namespace
}  // namespace nunchi::testing
