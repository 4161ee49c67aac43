// Recurrent layers against a scalar reference. tests/ops/recurrent_test.cpp compares gradients with
// finite differences.
#include "nunchi/kernels/recurrent.h"

#include <algorithm>
#include <numeric>

#include "nunchi/kernels/product.h"
#include "tests/reference/recurrent.h"
#include "tests/reference/versions.h"

namespace nunchi::testing {
namespace {

using kernels::CellKind;
using kernels::Recurrence;
using kernels::RecurrentPlan;

// The arrays of a plan, longest sentences first.
struct Plan {
  explicit Plan(const Batch& batch) {
    const auto sentences = static_cast<std::size_t>(batch.sentence_count());
    const auto length_of = [&](std::int32_t b) {
      return batch.offsets[std::size_t(b) + 1] - batch.offsets[std::size_t(b)];
    };
    sentence.resize(sentences);
    std::iota(sentence.begin(), sentence.end(), 0);
    std::stable_sort(sentence.begin(), sentence.end(),
                     [&](std::int32_t a, std::int32_t b) { return length_of(a) > length_of(b); });
    for (const std::int32_t b : sentence) {
      begin.push_back(batch.offsets[std::size_t(b)]);
      length.push_back(length_of(b));
    }
    for (std::int64_t t = 0; t < batch.longest; ++t) {
      active.push_back(
          std::count_if(length.begin(), length.end(), [&](std::int32_t n) { return n > t; }));
    }
  }
  RecurrentPlan view() const {
    return {.sentences = static_cast<std::int64_t>(sentence.size()),
            .steps = static_cast<std::int64_t>(active.size()),
            .active = active.data(),
            .sentence = sentence.data(),
            .begin = begin.data(),
            .length = length.data()};
  }
  std::vector<std::int32_t> sentence, begin, length;
  std::vector<std::int64_t> active;
};

template <class T>
struct Problem {
  Problem(const Batch& batch, CellKind cell, std::int64_t width)
      : batch(batch), plan(batch), cell(cell), width(width) {}

  // Gates, results and states are in the second half of each row, as in a bidirectional layer.
  Recurrence<T> forward(bool reverse, bool from_zero) {
    const std::int64_t g = gate_count * width;
    return {
        .in = {.cell = cell,
               .reverse = reverse,
               .width = width,
               .plan = plan.view(),
               .rows = batch.rows(),
               .gates = pre_activations.data() + g,
               .gates_stride = 2 * g,
               .product = {.n = g, .k = width, .b = weight.data(), .transpose_b = true},
               .initial_h = from_zero ? nullptr : initial_h.data() + width,
               .initial_c = from_zero || cell == CellKind::gru ? nullptr : initial_c.data() + width,
               .state_stride = 2 * width,
               .previous_h = previous.data(),
               .saved = saved.data()},
        .bias = bias.data(),
        .out = out.data() + width,
        .out_stride = 2 * width,
        .last_h = last_h.data() + width,
        .last_c = cell == CellKind::lstm ? last_c.data() + width : nullptr};
  }

  const Batch& batch;
  const Plan plan;
  CellKind cell;
  std::int64_t width, gate_count = kernels::gates_of(cell), sentences = batch.sentence_count(),
                      step_order_rows = batch.capacity + kernels::kSpareRows;
  std::vector<T> pre_activations = random_values<T>(batch.capacity * 2 * gate_count * width, 1),
                 weight = random_values<T>(gate_count * width * width, 2, 0.5),
                 bias = random_values<T>(gate_count * width, 3),
                 initial_h = random_values<T>(sentences * 2 * width, 4),
                 initial_c = random_values<T>(sentences * 2 * width, 5);
  std::vector<T> previous = unwritten<T>(step_order_rows * width),
                 saved = unwritten<T>(step_order_rows * width),
                 out = unwritten<T>(batch.capacity * 2 * width),
                 last_h = unwritten<T>(sentences * 2 * width),
                 last_c = unwritten<T>(sentences * 2 * width);
};

template <class T>
std::vector<double> as_doubles(const std::vector<T>& all, std::int64_t begin, std::int64_t count) {
  const auto values = subrange(all, begin, count);
  return {values.begin(), values.end()};
}

template <class T>
void expect_like_reference(CpuContext& ctx, Problem<T>& x, bool reverse, bool from_zero) {
  const std::vector<T> pre_activations = x.pre_activations;  // a copy: the kernel overwrites them
  const std::int64_t H = x.width, g = x.gate_count * H;
  kernels::run(ctx, x.forward(reverse, from_zero));
  const reference::RecurrentCell cell{x.cell, H, as_doubles(x.weight, 0, g * H),
                                      as_doubles(x.bias, 0, g)};
  for (std::int64_t b = 0; b < x.sentences; ++b) {
    reference::RecurrentState state{std::vector<double>(std::size_t(H)),
                                    std::vector<double>(std::size_t(H))};
    if (!from_zero) {
      state = {as_doubles(x.initial_h, b * 2 * H + H, H),
               as_doubles(x.initial_c, b * 2 * H + H, H)};
    }
    const std::int64_t begin = x.batch.offsets[std::size_t(b)],
                       end = x.batch.offsets[std::size_t(b) + 1];
    for (std::int64_t t = 0; t < end - begin; ++t) {
      const std::int64_t row = reverse ? end - 1 - t : begin + t;
      state = reference::next_state(cell, as_doubles(pre_activations, row * 2 * g + g, g), state);
      expect_close("out", subrange(x.out, row * 2 * H + H, H), state.h);
    }
    expect_close("last_h", subrange(x.last_h, b * 2 * H + H, H), state.h);
    if (x.cell == CellKind::lstm) {
      expect_close("last_c", subrange(x.last_c, b * 2 * H + H, H), state.c);
    }
  }
  for (std::int64_t row = 0; row < x.batch.capacity; ++row) {
    for (std::int64_t i = 0; i < H; ++i) {
      // The other half must stay untouched.
      ASSERT_TRUE(std::isnan(x.out[std::size_t(row * 2 * H + i)])) << "row " << row;
      if (row >= x.batch.count) {
        ASSERT_EQ(x.out[std::size_t(row * 2 * H + H + i)], T(0)) << "row " << row;
        ASSERT_EQ(x.previous[std::size_t(row * H + i)], T(0)) << "row " << row;
      }
    }
  }
}

TEST(Recurrence, MatchesTheReference) {
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    for (const CellKind cell : {CellKind::gru, CellKind::lstm}) {
      for (const std::int64_t width : {1, 3, 20, 37, 64}) {
        for (const bool reverse : {false, true}) {
          for (const bool from_zero : {false, true}) {
            SCOPED_TRACE(std::to_string(width) + (reverse ? " reverse" : "") +
                         (from_zero ? " from zero" : "") +
                         (cell == CellKind::lstm ? " lstm" : " gru"));
            const Batch batch({5, 1, 0, 9, 5, 3}, 4);
            Problem<T> x(batch, cell, width);
            expect_like_reference(ctx, x, reverse, from_zero);
            if (::testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
  });
}

TEST(Recurrence, EmptySentencesKeepTheirState) {
  CpuContext ctx({.threads = 2});
  const Batch batch({0, 0}, 2);
  Problem<double> x(batch, CellKind::lstm, 5);
  expect_like_reference(ctx, x, false, false);
}

// Enough sentences that the rows of a step's product are rounded up and several threads share the
// work.
Batch many_sentences() {
  std::vector<std::int32_t> lengths;
  for (std::int32_t b = 0; b < 75; ++b) lengths.push_back(1 + b * 7 % 11);
  return Batch(lengths, 3);
}

TEST(Recurrence, ManySentencesMatchTheReference) {
  const Batch batch = many_sentences();
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    for (const CellKind cell : {CellKind::gru, CellKind::lstm}) {
      Problem<T> x(batch, cell, 40);
      expect_like_reference(ctx, x, true, false);
    }
  });
}

TEST(Recurrence, NumberOfThreadsDoesNotChangeBits) {
  if (!kernels::rows_are_independent()) {
    GTEST_SKIP()
        << "with this product library the number of rows in a product may change a row's bits";
  }
  const Batch batch = many_sentences();
  expect_same_bits_for_any_threads([&]<class T>(CpuContext& ctx) {
    Problem<T> x(batch, CellKind::lstm, 130);
    kernels::run(ctx, x.forward(false, true));
    std::vector<T> results;
    for (std::int64_t row = 0; row < batch.count; ++row) {
      const std::vector<T> row_values = subrange(x.out, row * 260 + 130, 130);
      results.insert(results.end(), row_values.begin(), row_values.end());
    }
    return results;
  });
}

}  // namespace
}  // namespace nunchi::testing
