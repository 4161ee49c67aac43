#include "nunchi/kernels/embedding.h"

#include "tests/kernels/cuda/compare.h"

namespace nunchi::testing {
namespace {

constexpr std::int64_t kVocabulary = 50, kPositions = 127;

struct Problem {
  std::vector<std::int32_t> lengths = {33, 1, 127, 32, 31};
  std::int64_t spare = 32, width = 64;
  float dropout = 0;
  bool table = true, positions = true;
  std::int32_t distinct = kVocabulary;  // number of different tokens
};

// The batch on a device.
struct Device {
  Device(ContextBase& context, const Problem& p) {
    std::vector<std::int32_t> sentence, position, ids;
    for (std::size_t b = 0; b < p.lengths.size(); ++b) {
      for (std::int32_t i = 0; i < p.lengths[b]; ++i) {
        sentence.push_back(static_cast<std::int32_t>(b + 3));
        position.push_back(i);
      }
    }
    const std::size_t real = sentence.size();
    capacity = static_cast<std::int64_t>(real) + p.spare;
    for (std::int64_t r = 0; r < capacity; ++r) {
      ids.push_back(static_cast<std::int32_t>((r * r + 7 * r) % p.distinct));
    }
    sentence.resize(static_cast<std::size_t>(capacity));
    position.resize(static_cast<std::size_t>(capacity));
    count_ = from_host(context, std::vector<std::int32_t>{static_cast<std::int32_t>(real)}, {1});
    sentence_ = from_host(context, sentence, {capacity});
    position_ = from_host(context, position, {capacity});
    ids_ = from_host(context, ids, {capacity});
  }
  kernels::Rows rows() const {
    return {.capacity = capacity,
            .count = count_.data<std::int32_t>(),
            .sentence = sentence_.data<std::int32_t>(),
            .position = position_.data<std::int32_t>()};
  }
  const std::int32_t* ids() const { return ids_.data<std::int32_t>(); }

  std::int64_t capacity;

 private:
  Tensor count_, sentence_, position_, ids_;
};

kernels::Dropout dropout_of(ContextBase& context, const Problem& p) {
  return {.probability = p.dropout, .operation_id = 9, .key = context.device_random_key()};
}

Job forward(const Problem& p) {
  return [p](ContextBase& context, DType dtype) {
    const Device batch(context, p);
    const Tensor table = input(context, dtype, {kVocabulary, p.width}, 1);
    const Tensor positions = input(context, dtype, {kPositions, p.width}, 2);
    const Tensor out = unwritten_tensor(context, dtype, {batch.capacity, p.width});
    dispatch(table, [&]<class T>(auto& ctx) {
      kernels::run(ctx,
                   kernels::Embedding<T>{.rows = batch.rows(),
                                         .width = p.width,
                                         .scale = std::sqrt(static_cast<double>(p.width)),
                                         .dropout = dropout_of(context, p),
                                         .ids = batch.ids(),
                                         .table = table.data<T>(),
                                         .positions = p.positions ? positions.data<T>() : nullptr,
                                         .out = out.data<T>()});
    });
    return std::vector<Output>{output("out", out)};
  };
}

Job backward(const Problem& p) {
  return [p](ContextBase& context, DType dtype) {
    const Device batch(context, p);
    const Tensor d_out = input(context, dtype, {batch.capacity, p.width}, 3);
    const Tensor d_table = input(context, accumulator_type(dtype), {kVocabulary, p.width}, 4);
    const Tensor d_positions = input(context, accumulator_type(dtype), {kPositions, p.width}, 5);
    dispatch(d_out, [&]<class T>(auto& ctx) {
      kernels::run(ctx,
                   kernels::EmbeddingBackward<T>{
                       .rows = batch.rows(),
                       .width = p.width,
                       .scale = 3,
                       .dropout = dropout_of(context, p),
                       .ids = batch.ids(),
                       .d_out = d_out.data<T>(),
                       .d_table = p.table ? d_table.data<Accumulator<T>>() : nullptr,
                       .d_positions = p.positions ? d_positions.data<Accumulator<T>>() : nullptr});
    });
    return std::vector<Output>{output("d_table", d_table), output("d_positions", d_positions)};
  };
}

// Gradients of tables are f32 sums of bf16 numbers: the same tolerance for both types.
constexpr Tolerance kSums{.f32 = 3e-6, .bf16 = 3e-6};

TEST(EmbeddingOnGpu, MatchesTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t width : {1, 3, 8, 20, 37, 64, 130, 512}) {
    for (const float dropout : {0.0f, 0.1f}) {
      for (const bool positions : {true, false}) {
        SCOPED_TRACE("width " + std::to_string(width));
        expect_like_cpu(forward({.width = width, .dropout = dropout, .positions = positions}));
      }
    }
  }
}

TEST(EmbeddingOnGpu, GradientsMatchTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t width : {1, 3, 8, 20, 37, 64, 130, 512, 1096}) {
    for (const float dropout : {0.0f, 0.5f}) {
      SCOPED_TRACE("width " + std::to_string(width));
      expect_like_cpu(backward({.width = width, .dropout = dropout}), kSums);
    }
  }
  expect_like_cpu(backward({.positions = false}), kSums);
  expect_like_cpu(backward({.table = false}), kSums);
}

// Rows are sorted by token and split into chunks: one chunk may hold many tokens, or one token may
// span several chunks.
TEST(EmbeddingOnGpu, SumsTokensOfAnyFrequency) {
  SKIP_WITHOUT_GPU();
  for (const std::int32_t distinct : {1, 2, 3, 7, 50}) {
    for (const std::int32_t sentences : {1, 2, 16, 70}) {
      SCOPED_TRACE(std::to_string(distinct) + " tokens, " + std::to_string(sentences));
      const std::vector<std::int32_t> lengths(static_cast<std::size_t>(sentences), 32);
      for (const std::int64_t spare : {0, 5}) {
        expect_like_cpu(backward({.lengths = lengths,
                                  .spare = spare,
                                  .width = 40,
                                  .dropout = 0.1f,
                                  .distinct = distinct}),
                        {.f32 = 1e-5, .bf16 = 1e-5});
      }
    }
  }
}

TEST(EmbeddingOnGpu, RepeatedRunsGiveTheSameGradientBits) {
  SKIP_WITHOUT_GPU();
  CudaContext cuda;
  cuda.set_random_key({.seed = 5, .step = 9});
  const Problem p{.lengths = std::vector<std::int32_t>(200, 100), .width = 256, .dropout = 0.1f};
  const auto once = backward(p)(cuda, DType::bf16);
  for (int i = 0; i < 3; ++i) {
    const auto again = backward(p)(cuda, DType::bf16);
    EXPECT_TRUE(same_bits(once[0].values, again[0].values));
    EXPECT_TRUE(same_bits(once[1].values, again[1].values));
  }
}

}  // namespace
}  // namespace nunchi::testing
