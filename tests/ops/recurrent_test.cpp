// The gradients of recurrent layers against central differences, and single steps against whole
// sentences.
#include "nunchi/ops/recurrent.h"

#include "tests/gradient_check.h"

namespace nunchi::testing {
namespace {

// A layer whose parameters are leaves.
struct Layer {
  Layer(ContextBase& context, CellKind cell, std::int64_t inputs, std::int64_t width,
        int directions, std::uint64_t seed) {
    const std::int64_t gates = kernels::gates_of(cell) * width;
    const auto make = [&](const std::string& name, const Shape& shape) {
      leaves.push_back(leaf(context, name + std::to_string(seed), shape, seed + leaves.size()));
      return leaves.back().variable;
    };
    layer.cell = cell;
    layer.input = {make("input.weight", {directions * gates, inputs}),
                   make("input.bias", {directions * gates})};
    for (int d = 0; d < directions; ++d) {
      layer.hidden[std::size_t(d)] = {make("hidden.weight", {gates, width}),
                                      make("hidden.bias", {gates})};
    }
  }
  std::vector<Leaf> leaves;
  RecurrentLayer layer;
};

class Recurrent : public ::testing::TestWithParam<CellKind> {
 protected:
  Recurrent() { context_.arena().poison(); }
  std::vector<Leaf> joined(std::vector<Leaf> first, const std::vector<Leaf>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }
  CpuContext context_{CpuOptions{.threads = 2}};
  const std::vector<std::int32_t> lengths_ = {3, 1, 4, 2}, target_lengths_ = {2, 4, 1, 3};
  const Ragged batch_ = make_ragged(context_, lengths_),
               target_ = make_ragged(context_, target_lengths_);
};

TEST_P(Recurrent, GradientsOfOneDirectionFromInitialStates) {
  const bool lstm = GetParam() == CellKind::lstm;
  const Leaf x = leaf(context_, "x", {batch_.capacity, 3}, 1), h = leaf(context_, "h", {4, 5}, 2),
             c = leaf(context_, "c", {4, 5}, 3);
  const Layer layer(context_, GetParam(), 3, 5, 1, 10);
  std::vector<Leaf> leaves = {x, h};
  if (lstm) leaves.push_back(c);
  expect_gradients(context_, joined(leaves, layer.leaves), batch_.rows, [&] {
    return recurrent(x.variable, layer.layer, batch_, {h.variable, lstm ? c.variable : Variable()})
        .out;
  });
}

TEST_P(Recurrent, GradientsOfTwoDirectionsFromZeroStates) {
  const Leaf x = leaf(context_, "x", {batch_.capacity, 3}, 1);
  const Layer layer(context_, GetParam(), 3, 5, 2, 10);
  expect_gradients(context_, joined({x}, layer.leaves), batch_.rows,
                   [&] { return recurrent(x.variable, layer.layer, batch_).out; });
}

// As in an encoder and a decoder that are connected only by their states.
TEST_P(Recurrent, GradientsFlowThroughTheLastStates) {
  const Leaf x = leaf(context_, "x", {batch_.capacity, 3}, 1),
             y = leaf(context_, "y", {target_.capacity, 4}, 2);
  const Layer encoder(context_, GetParam(), 3, 2, 2, 10),
      decoder(context_, GetParam(), 4, 4, 1, 50);
  expect_gradients(context_, joined(joined({x, y}, encoder.leaves), decoder.leaves), target_.rows,
                   [&] {
                     const auto encoded = recurrent(x.variable, encoder.layer, batch_);
                     return recurrent(y.variable, decoder.layer, target_, encoded.last).out;
                   });
}

TEST_P(Recurrent, GradientsFlowThroughRowsAndStatesTogether) {
  const Leaf x = leaf(context_, "x", {batch_.capacity, 3}, 1);
  const Layer below(context_, GetParam(), 3, 2, 2, 10), above(context_, GetParam(), 4, 2, 2, 30);
  expect_gradients(context_, joined(joined({x}, below.leaves), above.leaves), batch_.rows, [&] {
    const auto lower = recurrent(x.variable, below.layer, batch_);
    return recurrent(lower.out, above.layer, batch_, lower.last).out;
  });
}

TEST_P(Recurrent, ComputesOnlyWantedGradients) {
  const std::size_t inputs = 5;
  for (std::size_t learned = 0; learned < inputs; ++learned) {
    const Leaf x = leaf(context_, "x", {batch_.capacity, 3}, 1);
    Layer layer(context_, GetParam(), 3, 5, 1, 10);
    std::vector<Leaf> all = joined({x}, layer.leaves);
    const auto input = [&](std::size_t i) {
      return i == learned ? all[i].variable : Variable(all[i].variable.value(), false);
    };
    RecurrentLayer used = layer.layer;
    used.input = {input(1), input(2)};
    used.hidden[0] = {input(3), input(4)};
    expect_gradients(context_, {all[learned]}, batch_.rows,
                     [&] { return recurrent(input(0), used, batch_).out; });
  }
}

TEST_P(Recurrent, SingleStepsEqualWholeSentences) {
  const bool lstm = GetParam() == CellKind::lstm;
  const std::vector<std::int32_t> lengths(6, 5);
  const Ragged batch = make_ragged(context_, lengths);
  const Layer layer(context_, GetParam(), 3, 7, 1, 10);
  const Tensor x = random_tensor<double>(context_, {batch.capacity, 3}, 1);
  const RecurrentResult whole = recurrent(Variable(x), layer.layer, batch);
  const std::vector<double> expected = to_host<double>(whole.out.value()),
                            tokens = to_host<double>(x);
  Ragged rows;
  rows.rows = rows.capacity = 6;
  rows.count = from_host(context_, std::vector<std::int32_t>{6}, {1});
  rows.row_sentence = rows.row_position = from_host(context_, lengths, {6});
  StateRows previous{zeros(context_, DType::f64, {6, 7}),
                     lstm ? zeros(context_, DType::f64, {6, 7}) : Tensor()};
  for (std::size_t t = 0; t < 5; ++t) {
    std::vector<double> inputs, expected_h;
    for (std::size_t b = 0; b < 6; ++b) {
      const std::size_t row = b * 5 + t;
      inputs.insert(inputs.end(), &tokens[row * 3], &tokens[row * 3] + 3);
      expected_h.insert(expected_h.end(), &expected[row * 7], &expected[row * 7] + 7);
    }
    const StateRows next{Tensor::empty(context_, DType::f64, {6, 7}),
                         lstm ? Tensor::empty(context_, DType::f64, {6, 7}) : Tensor()};
    recurrent_step(from_host(context_, inputs, {6, 3}), layer.layer, rows, previous, next);
    EXPECT_TRUE(same_bits(to_host<double>(next.h), expected_h)) << "token " << t;
    previous = next;
  }
  if (lstm) {
    EXPECT_TRUE(same_bits(to_host<double>(previous.c), to_host<double>(whole.last.c.value())));
  }
}

TEST_P(Recurrent, RejectsWrongShapes) {
  const Layer layer(context_, GetParam(), 3, 5, 1, 10);
  const Leaf x = leaf(context_, "x", {batch_.capacity, 4}, 1), h = leaf(context_, "h", {3, 5}, 2),
             fits = leaf(context_, "x", {batch_.capacity, 3}, 1);
  const std::string wide = error_of([&] { recurrent(x.variable, layer.layer, batch_); });
  EXPECT_NE(wide.find("recurrent: the input weight"), std::string::npos) << wide;
  const std::string few = error_of([&] {
    recurrent(fits.variable, layer.layer, batch_, {h.variable, {}});
  });
  EXPECT_NE(few.find("a state has shape [3, 5], not [4, 5]"), std::string::npos) << few;
}

INSTANTIATE_TEST_SUITE_P(Cells, Recurrent, ::testing::Values(CellKind::gru, CellKind::lstm),
                         [](const auto& cell) {
                           return cell.param == CellKind::lstm ? "lstm" : "gru";
                         });

}  // namespace
}  // namespace nunchi::testing
