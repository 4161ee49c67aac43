#include "nunchi/kernels/decode_attention.h"

#include <numeric>

#include "tests/kernels/cuda/compare.h"
#include "tests/reference/score_bias.h"

namespace nunchi::testing {
namespace {

using Ints = std::vector<std::int32_t>;

constexpr Tolerance kTolerance{.f32 = 1e-5, .bf16 = 1e-2};

Tensor int_tensor(ContextBase& context, const Ints& values) {
  return from_host(context, values, {static_cast<std::int64_t>(values.size())});
}

struct DecodeCase {
  int heads = 4, kv_heads = 4;
  std::int64_t width = 64;
  bool use_slot_table = true;  // false: a row's keys are consecutive
  Bias bias = Bias::none;
  Ints lengths = {0, 1, 2, 7, 130, 16, 33, 64, 65, 300};
  std::int64_t spare_columns = 0;
};

std::string describe(const DecodeCase& c) {
  return "heads " + std::to_string(c.heads) + "/" + std::to_string(c.kv_heads) + " of " +
         std::to_string(c.width) + (c.use_slot_table ? ", slots" : ", consecutive keys") +
         ", bias " + std::to_string(static_cast<int>(c.bias)) + ", rows " +
         std::to_string(c.lengths.size());
}

// Two rows per hypothesis, shuffled slots; rows past the count have invalid indices.
Job decode_job(const DecodeCase& c) {
  return [c](ContextBase& context, DType dtype) {
    constexpr std::int32_t kInvalid = 1 << 30;
    const auto rows = static_cast<std::int64_t>(c.lengths.size());
    const std::int64_t capacity = rows + 3, hypotheses = (rows + 1) / 2;
    const std::int64_t longest = *std::max_element(c.lengths.begin(), c.lengths.end());
    const std::int64_t stride = longest + 3;
    std::int64_t key_rows = std::max<std::int64_t>(hypotheses * stride, longest + rows);
    // Not a multiple of 7, so that the slots 7 i mod key_rows are distinct.
    if (key_rows % 7 == 0) ++key_rows;
    Ints slot_values(static_cast<std::size_t>(hypotheses * stride)), hypothesis, begin,
        length = c.lengths;
    for (std::size_t i = 0; i < slot_values.size(); ++i) {
      slot_values[i] = static_cast<std::int32_t>(7 * static_cast<std::int64_t>(i) % key_rows);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      hypothesis.push_back(static_cast<std::int32_t>(hypotheses - 1 - r / 2));
      begin.push_back(static_cast<std::int32_t>(r));
    }
    for (Ints* row_values : {&hypothesis, &begin, &length}) row_values->resize(capacity, kInvalid);
    const Tensor count = int_tensor(context, {static_cast<std::int32_t>(rows)}),
                 slot_table = int_tensor(context, slot_values),
                 row_hypothesis = int_tensor(context, hypothesis),
                 key_begin = int_tensor(context, begin), row_length = int_tensor(context, length);
    const std::int64_t q_width = c.heads * c.width, kv_width = c.kv_heads * c.width;
    const std::int64_t q_stride = q_width + c.spare_columns,
                       kv_stride = 2 * kv_width + c.spare_columns;
    const Tensor q = input(context, dtype, {capacity, q_stride}, 1, 2),
                 kv = input(context, dtype, {key_rows, kv_stride}, 2, 2),
                 out = unwritten_tensor(context, dtype, {capacity, q_width}),
                 slopes = random_tensor<float>(context, {c.heads}, 3, 0.5),
                 table = input(context, dtype, {std::max(1, buckets_of(c.bias)), c.heads}, 4);
    dispatch(q, [&]<class T>(auto& ctx) {
      kernels::VisibleKeys keys{.length = row_length.data<std::int32_t>()};
      if (c.use_slot_table) {
        keys.slot = slot_table.data<std::int32_t>();
        keys.hypothesis = row_hypothesis.data<std::int32_t>();
        keys.slot_stride = stride;
      } else {
        keys.begin = key_begin.data<std::int32_t>();
      }
      kernels::run(
          ctx, kernels::DecodeAttention<T>{
                   .rows = {.capacity = capacity, .count = count.data<std::int32_t>()},
                   .heads = c.heads,
                   .kv_heads = c.kv_heads,
                   .head_width = c.width,
                   .q = q.data<T>(),
                   .k = kv.data<T>(),
                   .v = kv.data<T>() + kv_width,
                   .q_stride = q_stride,
                   .k_stride = kv_stride,
                   .v_stride = kv_stride,
                   .keys = keys,
                   .max_keys = longest,
                   .scale = 1 / std::sqrt(static_cast<double>(c.width)),
                   .bias = score_bias<T>(c.bias, slopes.data<Accumulator<T>>(), table.data<T>()),
                   .out = out.data<T>(),
                   .out_stride = q_width});
    });
    return std::vector{output("out", out)};
  };
}

TEST(CudaDecodeAttention, MatchesTheCpu) {
  SKIP_WITHOUT_GPU();
  std::vector<DecodeCase> cases;
  for (const std::int64_t width : {8, 16, 20, 32, 40, 64, 128, 256, 264, 301, 512, 1024}) {
    cases.push_back({.heads = 2, .kv_heads = 2, .width = width});
    cases.push_back({.heads = 2, .kv_heads = 1, .width = width, .use_slot_table = false});
  }
  for (const Bias bias : kBiases) {
    cases.push_back({.kv_heads = 2, .bias = bias});
    cases.push_back({.kv_heads = 1, .width = 32, .use_slot_table = false, .bias = bias});
    cases.push_back({.kv_heads = 2, .width = 512, .bias = bias});
  }
  cases.push_back({.spare_columns = 8});
  cases.push_back({.spare_columns = 3});
  cases.push_back({.lengths = {5}});
  for (const DecodeCase& c : cases) {
    SCOPED_TRACE(describe(c));
    expect_like_cpu(decode_job(c), kTolerance);
  }
}

// With many rows a row takes one warp; with few rows it takes four.
TEST(CudaDecodeAttention, MatchesTheCpuForManyRows) {
  SKIP_WITHOUT_GPU();
  DecodeCase c{.heads = 8, .kv_heads = 8, .lengths = Ints(301)};
  std::iota(c.lengths.begin(), c.lengths.end(), 0);
  expect_like_cpu(decode_job(c), kTolerance);
}

TEST(CudaDecodeAttention, DeterministicResultsDoNotDependOnTheRowCount) {
  SKIP_WITHOUT_GPU();
  CudaContext context({.deterministic = true});
  const DecodeCase few{.heads = 8, .kv_heads = 8, .use_slot_table = false, .lengths = {200, 150}};
  DecodeCase many = few;
  many.lengths.resize(300, 200);
  const std::vector<double> few_rows = decode_job(few)(context, DType::bf16)[0].values,
                            many_rows = decode_job(many)(context, DType::bf16)[0].values;
  for (std::size_t i = 0; i < 2 * 8 * 64; ++i) ASSERT_EQ(few_rows[i], many_rows[i]) << i;
}

// As in a step of a search, each hypothesis has one row; the kernel appends the row's new key and
// value to the cache.
Job append_job(const DecodeCase& c) {
  return [c](ContextBase& context, DType dtype) {
    const auto rows = static_cast<std::int64_t>(c.lengths.size());
    const std::int64_t capacity = rows + 3, kv_width = c.kv_heads * c.width,
                       stride = *std::max_element(c.lengths.begin(), c.lengths.end());
    Ints slot_values(static_cast<std::size_t>(capacity * stride), 1 << 30), length = c.lengths,
                                                                            new_slots;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int32_t i = 0; i < length[r]; ++i) {
        // Cached keys share the row's first five slots; the new key has a slot of its own.
        slot_values[r * stride + i] =
            static_cast<std::int32_t>((i + 1 < length[r] ? i % 5 : i) * rows + r);
      }
      new_slots.push_back(slot_values[r * stride + length[r] - 1]);
    }
    length.resize(capacity, 0), new_slots.resize(capacity, 0);
    const Tensor count = int_tensor(context, {static_cast<std::int32_t>(rows)}),
                 slot_table = int_tensor(context, slot_values),
                 row_length = int_tensor(context, length),
                 row_slot = int_tensor(context, new_slots);
    const std::int64_t q_width = c.heads * c.width, qkv_stride = q_width + 2 * kv_width;
    const Tensor qkv = input(context, dtype, {capacity, qkv_stride}, 1, 2),
                 cache = input(context, dtype, {rows * stride, 2 * kv_width}, 2, 2),
                 out = unwritten_tensor(context, dtype, {capacity, q_width});
    dispatch(qkv, [&]<class T>(auto& ctx) {
      T *cached_k = cache.data<T>(), *cached_v = cached_k + kv_width;
      const T* new_k = qkv.data<T>() + q_width;
      kernels::run(ctx, kernels::DecodeAttention<T>{
                            .rows = {.capacity = capacity, .count = count.data<std::int32_t>()},
                            .heads = c.heads,
                            .kv_heads = c.kv_heads,
                            .head_width = c.width,
                            .q = qkv.data<T>(),
                            .k = cached_k,
                            .v = cached_v,
                            .q_stride = qkv_stride,
                            .k_stride = 2 * kv_width,
                            .v_stride = 2 * kv_width,
                            .keys = {.slot = slot_table.data<std::int32_t>(),
                                     .slot_stride = stride,
                                     .length = row_length.data<std::int32_t>()},
                            .newest = {.slot = row_slot.data<std::int32_t>(),
                                       .k = new_k,
                                       .v = new_k + kv_width,
                                       .k_stride = qkv_stride,
                                       .v_stride = qkv_stride,
                                       .to_k = cached_k,
                                       .to_v = cached_v},
                            .max_keys = stride,
                            .scale = 1 / std::sqrt(static_cast<double>(c.width)),
                            .out = out.data<T>(),
                            .out_stride = q_width});
    });
    return std::vector{output("out", out), output("cache", cache)};
  };
}

TEST(CudaDecodeAttention, AddsNewKeysToTheCache) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t width : {20, 32, 64, 128, 301, 640}) {
    for (const int kv_heads : {1, 4}) {
      const DecodeCase c{.kv_heads = kv_heads, .width = width, .lengths = {1, 2, 9, 33, 70, 1, 32}};
      SCOPED_TRACE(describe(c));
      expect_like_cpu(append_job(c), kTolerance);
    }
  }
  expect_like_cpu(append_job({.lengths = {1, 200, 100}}), kTolerance);
}

TEST(CudaScatterRows, MatchesTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t width : {5, 64}) {
    for (const bool indexed : {false, true}) {
      expect_like_cpu(
          [=](ContextBase& context, DType dtype) {
            const Tensor count = int_tensor(context, {5}),
                         index = int_tensor(context, {8, 0, 3, 2, 9, 1 << 30, 1 << 30}),
                         from = input(context, dtype, {7, 2 * width}, 1),
                         to = input(context, dtype, {10, 3 * width}, 2);
            dispatch(from, [&]<class T>(auto& ctx) {
              kernels::run(ctx, kernels::ScatterRows<T>{
                                    .rows = {.capacity = 7, .count = count.data<std::int32_t>()},
                                    .width = width,
                                    .index = indexed ? index.data<std::int32_t>() : nullptr,
                                    .from = from.data<T>() + width,
                                    .from_stride = 2 * width,
                                    .to = to.data<T>() + 2 * width,
                                    .to_stride = 3 * width});
            });
            return std::vector{output("to", to)};
          },
          {.f32 = 0, .bf16 = 0});
    }
  }
}

TEST(CudaGatherRows, MatchesTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t width : {5, 64}) {
    expect_like_cpu(
        [=](ContextBase& context, DType dtype) {
          const Tensor count = int_tensor(context, {5}),
                       index = int_tensor(context, {8, 0, 3, 3, 9, 1 << 30, 1 << 30}),
                       from = input(context, dtype, {10, 2 * width}, 1),
                       to = unwritten_tensor(context, dtype, {7, width});
          dispatch(from, [&]<class T>(auto& ctx) {
            kernels::run(ctx, kernels::GatherRows<T>{
                                  .rows = {.capacity = 7, .count = count.data<std::int32_t>()},
                                  .width = width,
                                  .index = index.data<std::int32_t>(),
                                  .from = from.data<T>(),
                                  .from_stride = 2 * width,
                                  .to = to.data<T>()});
          });
          return std::vector{output("to", to)};
        },
        {.f32 = 0, .bf16 = 0});
  }
}

// A unit is a sentence to be generated, or one sample of it (kernels/search.h).
constexpr std::int64_t kCacheBlocksPerUnit = 110;

struct SlotCase {
  Ints parents;       // empty: the first step
  Ints token_counts;  // empty: one token per hypothesis
  bool has_source = true;
};

Job slot_job(const SlotCase& c) {
  return [c](ContextBase& context, DType) {
    const std::int64_t hypotheses = static_cast<std::int64_t>(
        c.token_counts.empty() ? c.parents.size() : c.token_counts.size());
    Ints offsets = {0};
    for (std::int64_t h = 0; h < hypotheses; ++h) {
      offsets.push_back(offsets.back() + (c.token_counts.empty() ? 1 : c.token_counts[h]));
    }
    const std::int64_t capacity = offsets.back() + 4, old_stride = 100, stride = 160;
    Ints old_slot(4 * old_stride), unit, blocks(3 * kCacheBlocksPerUnit);
    std::iota(old_slot.begin(), old_slot.end(), 1000);
    for (std::int64_t h = 0; h < hypotheses; ++h) unit.push_back(static_cast<std::int32_t>(h % 3));
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      blocks[i] = static_cast<std::int32_t>(i * 7 % blocks.size());
    }
    const Tensor parent = int_tensor(context, c.parents), offset = int_tensor(context, offsets),
                 hypothesis_unit = int_tensor(context, unit), old = int_tensor(context, old_slot),
                 old_length = int_tensor(context, {5, 90, 0, 64}),
                 block = int_tensor(context, blocks);
    // The UnitSlots: tokens of the first step, begin and length of the source.
    const Tensor units = int_tensor(
        context, c.has_source ? Ints{3, 4, 3, 1, 0, 4, 5, 11, 9} : Ints{3, 0, 0, 1, 0, 0, 5, 0, 0});
    const Tensor slot = zeros(context, DType::i32, {hypotheses * stride}),
                 length = zeros(context, DType::i32, {hypotheses}),
                 last_row = zeros(context, DType::i32, {hypotheses}),
                 count = zeros(context, DType::i32, {2});
    std::vector<Tensor> row_arrays;
    for (int i = 0; i < 6; ++i) {
      row_arrays.push_back(Tensor::empty(context, DType::i32, {capacity}));
      fill(row_arrays.back(), -1);
    }
    const auto data = [](const Tensor& tensor) { return tensor.data<std::int32_t>(); };
    const bool first = c.parents.empty();
    on_device(context, [&](auto& ctx) {
      kernels::run(ctx, kernels::ExtendSlots{
                            .hypotheses = hypotheses,
                            .hypotheses_per_unit = 5,
                            .capacity = capacity,
                            .parent = first ? nullptr : data(parent),
                            .unit = data(hypothesis_unit),
                            .offset = c.token_counts.empty() ? nullptr : data(offset),
                            .old_slot = first ? nullptr : data(old),
                            .old_stride = old_stride,
                            .old_length = first ? nullptr : data(old_length),
                            .units = reinterpret_cast<const kernels::UnitSlots*>(data(units)),
                            .block = data(block),
                            .block_stride = kCacheBlocksPerUnit,
                            .block_slots = 8,
                            .slot = data(slot),
                            .stride = stride,
                            .length = data(length),
                            .row_hypothesis = data(row_arrays[0]),
                            .row_position = data(row_arrays[1]),
                            .row_keys = data(row_arrays[2]),
                            .row_slot = data(row_arrays[3]),
                            .row_memory_begin = data(row_arrays[4]),
                            .row_memory_length = data(row_arrays[5]),
                            .last_row = data(last_row),
                            .count = data(count)});
    });
    std::vector<Output> found = {output("slot", slot), output("length", length),
                                 output("last_row", last_row), output("count", count)};
    const char* const names[] = {"row_hypothesis", "row_position",     "row_keys",
                                 "row_slot",       "row_memory_begin", "row_memory_length"};
    for (std::size_t i = 0; i < row_arrays.size(); ++i) {
      found.push_back(output(names[i], row_arrays[i]));
    }
    return found;
  };
}

TEST(CudaExtendSlots, MatchesTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const SlotCase& c :
       {SlotCase{.token_counts = {3, 1, 5}}, SlotCase{.parents = {2, 0, 1, 3, 1}},
        SlotCase{.parents = {3, 3}, .token_counts = {66, 0}},
        SlotCase{.parents = {1, 0, 1}, .token_counts = {1, 3, 1}, .has_source = false}}) {
    expect_like_cpu(slot_job(c), {.f32 = 0, .bf16 = 0}, {DType::f32});
  }
}

}  // namespace
}  // namespace nunchi::testing
