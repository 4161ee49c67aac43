#include "nunchi/kernels/embedding.h"

#include "tests/reference/embedding.h"
#include "tests/reference/versions.h"

namespace nunchi::testing {
namespace {

using kernels::Embedding;
using kernels::EmbeddingBackward;

const RandomKey kKey{.seed = 3, .step = 1};
constexpr std::int64_t kVocabulary = 50, kPositions = 127;

template <class T>
struct Problem {
  Problem(const Batch& batch, std::int64_t width, float dropout)
      : batch(batch),
        table(random_values<T>(kVocabulary * width, 1)),
        positions(random_values<T>(kPositions * width, 2)),
        out(unwritten<T>(batch.capacity * width)),
        d_out(random_values<T>(batch.capacity * width, 3)),
        d_table(random_values<T>(kVocabulary * width, 4)),
        d_positions(random_values<T>(kPositions * width, 5)) {
    // Repeated tokens, including the first and last of the vocabulary.
    for (std::int64_t r = 0; r < batch.capacity; ++r) {
      ids.push_back(static_cast<std::int32_t>(r * r % kVocabulary));
    }
    ids[1] = kVocabulary - 1;
    forward = {.rows = batch.rows(),
               .width = width,
               .scale = std::sqrt(static_cast<double>(width)),
               .dropout = {.probability = dropout, .operation_id = 9, .key = &kKey},
               .ids = ids.data(),
               .table = table.data(),
               .positions = positions.data(),
               .out = out.data()};
    backward = {.rows = batch.rows(),
                .width = width,
                .scale = forward.scale,
                .dropout = forward.dropout,
                .ids = ids.data(),
                .d_out = d_out.data(),
                .d_table = d_table.data(),
                .d_positions = d_positions.data()};
  }

  const Batch& batch;
  std::vector<std::int32_t> ids;
  std::vector<T> table, positions, out, d_out, d_table, d_positions;
  Embedding<T> forward;
  EmbeddingBackward<T> backward;
};

template <class T>
std::vector<double> as_double(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

TEST(Embedding, IsTheScaledRowPlusThePosition) {
  const Batch batch(kLengths, 32);
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    for (const std::int64_t width : kWidths) {
      for (const float dropout : {0.0f, 0.1f}) {
        for (const bool with_positions : {true, false}) {
          Problem<T> p(batch, width, dropout);
          if (!with_positions) p.forward.positions = nullptr;
          const std::vector<double> expected = reference::embedding(p.forward);
          kernels::run(ctx, p.forward);
          expect_close("out", p.out, expected);
          expect_finite_from("out", p.out, batch.count * width);
        }
      }
    }
  });
}

TEST(EmbeddingBackward, AddsEveryRowToItsTokenAndPosition) {
  const Batch batch(kLengths, 32);
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    for (const std::int64_t width : {1, 3, 20, 37, 64, 130, 300}) {
      for (const float dropout : {0.0f, 0.5f}) {
        Problem<T> p(batch, width, dropout);
        std::vector<double> d_table = as_double(p.d_table), d_positions = as_double(p.d_positions);
        reference::embedding_backward(p.backward, d_table, d_positions);
        kernels::run(ctx, p.backward);
        expect_close("d_table", p.d_table, d_table);
        expect_close("d_positions", p.d_positions, d_positions);
      }
    }
  });
}

TEST(EmbeddingBackward, SkipsGradientsThatAreNotWanted) {
  const Batch batch(kLengths, 32);
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    for (const bool want_table : {true, false}) {
      Problem<T> p(batch, 37, 0.1f);
      std::vector<double> d_table = as_double(p.d_table), d_positions = as_double(p.d_positions);
      std::vector<double> none;
      if (want_table) {
        p.backward.d_positions = nullptr;
        reference::embedding_backward(p.backward, d_table, none);
      } else {
        p.backward.d_table = nullptr;
        reference::embedding_backward(p.backward, none, d_positions);
      }
      kernels::run(ctx, p.backward);
      expect_close("d_table", p.d_table, d_table);
      expect_close("d_positions", p.d_positions, d_positions);
    }
  });
}

TEST(EmbeddingBackward, DropsTheSameElementsAsForward) {
  const Batch batch({127}, 1);
  for_every_isa_and_type([&]<class T>(CpuContext& ctx) {
    Problem<T> p(batch, 130, 0.5f);
    std::fill(p.positions.begin(), p.positions.end(), T(1));
    std::fill(p.d_positions.begin(), p.d_positions.end(), T(0));
    p.backward.d_table = nullptr;
    kernels::run(ctx, p.forward);
    kernels::run(ctx, p.backward);
    for (std::size_t i = 0; i < 127 * 130; ++i) {
      ASSERT_EQ(p.out[i] == T(0), p.d_positions[i] == T(0)) << i;
    }
  });
}

TEST(Embedding, NumberOfThreadsDoesNotChangeBits) {
  const Batch batch(kLengths, 32);
  expect_same_bits_for_any_threads([&]<class T>(CpuContext& ctx) {
    Problem<T> p(batch, 700, 0.1f);
    kernels::run(ctx, p.forward);
    kernels::run(ctx, p.backward);
    std::vector<T> results = p.out;
    results.insert(results.end(), p.d_table.begin(), p.d_table.end());
    results.insert(results.end(), p.d_positions.begin(), p.d_positions.end());
    return results;
  });
}

}  // namespace
}  // namespace nunchi::testing
