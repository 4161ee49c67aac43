#include "nunchi/kernels/decode_attention.h"

#include <numeric>

#include "tests/reference/attention_problem.h"
#include "tests/reference/decode_attention.h"

namespace nunchi::testing {
namespace {

using kernels::DecodeAttention;
using kernels::ExtendSlots;
using kernels::GatherRows;
using kernels::ScatterRows;

struct DecodeSetup {
  int heads = 4, kv_heads = 4;
  std::int64_t width = 16;
  bool use_slot_table = true;  // false: a row's keys are consecutive
  Bias bias = Bias::none;
  double spread = 2;
  std::vector<std::int32_t> lengths = {0, 1, 2, 7, 130, 16, 33, 64, 65};  // of the rows
};

std::string describe(const DecodeSetup& s) {
  return "heads " + std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) + ", width " +
         std::to_string(s.width) + (s.use_slot_table ? ", slots" : ", consecutive keys") +
         ", bias " + std::to_string(static_cast<int>(s.bias));
}

// Buffers in the most general layout: slices of wider rows, two rows per hypothesis, shuffled
// slots. Keys that no row may see are NaN.
template <class T>
struct DecodeProblem {
  explicit DecodeProblem(const DecodeSetup& setup) : setup(setup) {
    count = static_cast<std::int32_t>(setup.lengths.size());
    capacity = count + 3;
    longest = *std::max_element(setup.lengths.begin(), setup.lengths.end());
    const std::int64_t q_width = setup.heads * setup.width, kv_width = setup.kv_heads * setup.width;
    q = {1, q_width, q_width + 3};
    k = {0, kv_width, 2 * kv_width + 1};
    v = {kv_width + 1, kv_width, 2 * kv_width + 1};
    out = {2, q_width, q_width + 5};
    if (setup.use_slot_table) {
      assign_slots();
    } else {
      assign_consecutive_rows();
    }
    queries = random_values<T>(capacity * q.stride, 1, setup.spread);
    const auto values = random_values<T>(key_rows * k.stride, 2, setup.spread);
    keys = unwritten<T>(key_rows * k.stride);
    for (std::int64_t r = 0; r < count; ++r) {
      for (std::int64_t p = 0; p < setup.lengths[r]; ++p) {
        const std::int64_t offset = reference::key_row(key_view(), r, p) * k.stride;
        std::copy_n(values.begin() + offset, k.stride, keys.begin() + offset);
      }
    }
    output = unwritten<T>(capacity * out.stride);
    table = random_values<T>(buckets_of(setup.bias) * setup.heads, 4);
    slopes = random_values<T>(setup.heads, 6, 0.5);
  }
  DecodeProblem(const DecodeProblem&) = delete;
  DecodeProblem& operator=(const DecodeProblem&) = delete;

  kernels::VisibleKeys key_view() const {
    if (!setup.use_slot_table) return {.begin = begin.data(), .length = setup.lengths.data()};
    return {.slot = slot.data(),
            .hypothesis = hypothesis.data(),
            .slot_stride = slot_stride,
            .length = setup.lengths.data()};
  }

  DecodeAttention<T> kernel() {
    return {.rows = {.capacity = capacity, .count = &count},
            .heads = setup.heads,
            .kv_heads = setup.kv_heads,
            .head_width = setup.width,
            .q = queries.data() + q.column,
            .k = keys.data() + k.column,
            .v = keys.data() + v.column,
            .q_stride = q.stride,
            .k_stride = k.stride,
            .v_stride = v.stride,
            .keys = key_view(),
            .max_keys = longest,
            .scale = 1 / std::sqrt(static_cast<double>(setup.width)),
            .bias = score_bias(setup.bias, slopes.data(), table.data()),
            .out = output.data() + out.column,
            .out_stride = out.stride};
  }

  std::vector<T> dense_out() const { return dense(output, out, capacity); }

  DecodeSetup setup;
  std::int32_t count = 0;
  std::int64_t capacity = 0, longest = 0, key_rows = 0, slot_stride = 0;
  Slice q{}, k{}, v{}, out{};
  std::vector<std::int32_t> slot, hypothesis, begin;
  std::vector<T> queries, keys, output, table, slopes;

 private:
  // Hypotheses have two rows each, the last hypothesis first. Slot i is 7 i modulo the number of
  // key rows, which is not a multiple of 7, so all slots differ.
  void assign_slots() {
    const std::int64_t hypotheses = (count + 1) / 2;
    slot_stride = longest + 3;
    key_rows = hypotheses * slot_stride;
    if (key_rows % 7 == 0) ++key_rows;
    slot.assign(static_cast<std::size_t>(hypotheses * slot_stride), 1 << 30);
    for (std::int64_t h = 0; h < hypotheses; ++h) {
      for (std::int64_t p = 0; p < longest; ++p) {
        slot[h * slot_stride + p] = static_cast<std::int32_t>(7 * (h * slot_stride + p) % key_rows);
      }
    }
    for (std::int32_t r = 0; r < count; ++r) {
      hypothesis.push_back(static_cast<std::int32_t>(hypotheses) - 1 - r / 2);
    }
    hypothesis.resize(static_cast<std::size_t>(capacity), 1 << 30);
    setup.lengths.resize(static_cast<std::size_t>(capacity), 1 << 30);
  }

  void assign_consecutive_rows() {
    begin.resize(static_cast<std::size_t>(capacity), 1 << 30);
    for (std::int32_t r = count; r-- > 0;) {
      begin[r] = static_cast<std::int32_t>(key_rows + 2);
      key_rows += setup.lengths[r] + 2;
    }
    key_rows += 2;
    setup.lengths.resize(static_cast<std::size_t>(capacity), 1 << 30);
  }
};

std::vector<DecodeSetup> decode_setups() {
  std::vector<DecodeSetup> setups;
  for (const bool slots : {true, false}) {
    for (const std::int64_t width : {1, 7, 16, 64}) {
      for (const auto& [heads, kv_heads] : {std::pair{1, 1}, {4, 2}, {3, 1}}) {
        setups.push_back(
            {.heads = heads, .kv_heads = kv_heads, .width = width, .use_slot_table = slots});
      }
    }
    for (const Bias bias : kBiases) {
      setups.push_back({.use_slot_table = slots, .bias = bias});
      setups.push_back({.kv_heads = 2, .width = 7, .use_slot_table = slots, .bias = bias});
    }
    setups.push_back({.use_slot_table = slots, .lengths = {0}});
    setups.push_back({.use_slot_table = slots, .lengths = {1}});
  }
  return setups;
}

template <class T>
void check_decode(const DecodeSetup& setup, CpuContext& ctx, double tolerance = kTolerance<T>) {
  DecodeProblem<T> x(setup);
  kernels::run(ctx, x.kernel());
  expect_close("out", x.dense_out(), reference::decode_attention(x.kernel(), x.count), tolerance);
  expect_zero_from("out", x.dense_out(), x.count * x.out.width);
  for (std::int64_t r = 0; r < x.capacity; ++r) {
    const auto row = subrange(x.output, r * x.out.stride, x.out.stride);
    const auto gap = subrange(row, x.out.column + x.out.width, 3);
    ASSERT_TRUE(std::isnan(row[0]) && std::isnan(row[1]) && std::isnan(gap[0]) &&
                std::isnan(gap[1]) && std::isnan(gap[2]))
        << "row " << r << " wrote outside its slice";
  }
}

TEST(DecodeAttention, MatchesTheReference) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const DecodeSetup& setup : decode_setups()) {
      SCOPED_TRACE(describe(setup));
      check_decode<T>(setup, ctx);
    }
  });
}

TEST(DecodeAttention, LargeScoresDoNotOverflow) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    // Scores of thousands lose digits in the softmax.
    check_decode<T>({.spread = 40}, ctx, kTolerance<T> * 800);
  });
}

// A decode step must give the last row that attention over the whole sentence gives.
TEST(DecodeAttention, MatchesTheLastRowOfCausalAttention) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const Bias bias : {Bias::none, Bias::slopes, Bias::buckets, Bias::clipped}) {
      AttentionProblem<T> x({.queries = {33, 1, 64}, .kv_heads = 2, .causal = true, .bias = bias});
      kernels::run(ctx, x.forward());
      const kernels::AttentionInputs<T> in = x.inputs();
      for (std::size_t b = 0; b < x.length.size(); ++b) {
        const std::int64_t row = x.batch.offsets[b + 1] - 1;
        std::vector<T> out = unwritten<T>(x.out.width);
        kernels::run(
            ctx, DecodeAttention<T>{.rows = {.capacity = 1},
                                    .heads = in.heads,
                                    .kv_heads = in.kv_heads,
                                    .head_width = in.head_width,
                                    .q = in.q + row * in.q_stride,
                                    .k = in.k,
                                    .v = in.v,
                                    .q_stride = in.q_stride,
                                    .k_stride = in.k_stride,
                                    .v_stride = in.v_stride,
                                    .keys = {.begin = in.k_begin + b, .length = in.k_length + b},
                                    .max_keys = in.max_keys,
                                    .scale = in.scale,
                                    .bias = in.bias,
                                    .out = out.data(),
                                    .out_stride = x.out.width});
        const auto expected = subrange(x.dense_out(), row * x.out.width, x.out.width);
        expect_close("out", out, {expected.begin(), expected.end()});
      }
    }
  });
}

TEST(DecodeAttention, PropagatesNaN) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const std::int32_t length : {1, 2, 17, 64}) {
      for (const std::int32_t position : {0, length / 2, length - 1}) {
        DecodeProblem<T> x(
            {.heads = 1, .kv_heads = 1, .use_slot_table = false, .lengths = {length}});
        x.keys[(x.begin[0] + position) * x.k.stride] = static_cast<T>(NAN);
        kernels::run(ctx, x.kernel());
        EXPECT_TRUE(std::isnan(x.dense_out()[0])) << position << " of " << length;
      }
    }
  });
}

TEST(DecodeAttention, NumberOfThreadsDoesNotChangeBits) {
  for (const bool slots : {true, false}) {
    expect_same_bits_for_any_threads([&]<class T>(CpuContext& ctx) {
      DecodeProblem<T> x({.width = 64, .use_slot_table = slots, .bias = Bias::slopes});
      kernels::run(ctx, x.kernel());
      return x.dense_out();
    });
  }
}

TEST(DecodeAttention, RowBitsDoNotDependOnOtherRows) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const DecodeSetup& setup : decode_setups()) {
      SCOPED_TRACE(describe(setup));
      DecodeProblem<T> x(setup);
      kernels::run(ctx, x.kernel());
      for (std::int64_t r = 0; r < x.count; ++r) {
        std::vector<T> alone = unwritten<T>(x.out.width);
        DecodeAttention<T> p = x.kernel();
        p.rows = {.capacity = 1};
        p.q += r * p.q_stride;
        p.keys.length += r;
        if (setup.use_slot_table) p.keys.hypothesis += r;
        if (!setup.use_slot_table) p.keys.begin += r;
        p.max_keys = setup.lengths[r] + r;  // a larger bound must not change bits either
        p.out = alone.data();
        kernels::run(ctx, p);
        EXPECT_TRUE(same_bits(alone, subrange(x.dense_out(), r * x.out.width, x.out.width)))
            << "row " << r;
      }
    }
  });
}

constexpr std::int64_t kManyRows = 203;  // more than one thread's range

// The numbers 0 to `below` - 1, shuffled.
std::vector<std::int32_t> shuffled(std::int64_t below) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(below));
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto draws = random_values<double>(below, 3);
  std::sort(numbers.begin(), numbers.end(),
            [&](std::int32_t a, std::int32_t b) { return draws[a] < draws[b]; });
  return numbers;
}

TEST(ScatterRows, WritesIndexedRowsAndKeepsTheOthers) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const std::int64_t width : kWidths) {
      for (const std::int32_t count : {0, 1, 200}) {
        const std::int64_t from_stride = width + 2, to_stride = width + 5, slots = 300;
        std::vector<std::int32_t> index = shuffled(slots);
        index.resize(static_cast<std::size_t>(kManyRows));
        std::fill(index.begin() + count, index.end(), 1 << 30);  // invalid: must not be read
        const auto from = random_values<T>(kManyRows * from_stride, 1);
        auto to = random_values<T>(slots * to_stride, 2);
        auto expected = to;
        for (std::int64_t r = 0; r < count; ++r) {
          for (std::int64_t i = 0; i < width; ++i) {
            expected[index[r] * to_stride + i] = from[r * from_stride + i];
          }
        }
        kernels::run(ctx, ScatterRows<T>{.rows = {.capacity = kManyRows, .count = &count},
                                         .width = width,
                                         .index = index.data(),
                                         .from = from.data(),
                                         .from_stride = from_stride,
                                         .to = to.data(),
                                         .to_stride = to_stride});
        EXPECT_TRUE(same_bits(to, expected)) << width << ", " << count;
      }
    }
  });
}

TEST(GatherRows, ReadsIndexedRowsAndClearsTheTail) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const std::int64_t width : kWidths) {
      for (const std::int32_t count : {0, 1, 200}) {
        const std::int64_t from_stride = width + 2, source_rows = 40;
        std::vector<std::int32_t> index(static_cast<std::size_t>(kManyRows), 1 << 30);
        for (std::int32_t r = 0; r < count; ++r) index[r] = r * 7 % 40;  // some several times
        const auto from = random_values<T>(source_rows * from_stride, 1);
        auto to = unwritten<T>(kManyRows * width);
        std::vector<T> expected(to.size(), T(0));
        for (std::int64_t r = 0; r < count; ++r) {
          for (std::int64_t i = 0; i < width; ++i) {
            expected[r * width + i] = from[index[r] * from_stride + i];
          }
        }
        kernels::run(ctx, GatherRows<T>{.rows = {.capacity = kManyRows, .count = &count},
                                        .width = width,
                                        .index = index.data(),
                                        .from = from.data(),
                                        .from_stride = from_stride,
                                        .to = to.data()});
        EXPECT_TRUE(same_bits(to, expected)) << width << ", " << count;
      }
    }
  });
}

// The outputs of ExtendSlots in one step, with exactly the sizes it needs.
struct SlotStep {
  SlotStep(std::int64_t hypotheses, std::int64_t capacity, std::int64_t stride)
      : slot(static_cast<std::size_t>(hypotheses * stride), -1),
        length(static_cast<std::size_t>(hypotheses), -1),
        last_row(static_cast<std::size_t>(hypotheses), -1),
        columns(6, std::vector<std::int32_t>(static_cast<std::size_t>(capacity), -1)) {}

  std::vector<std::int32_t> slot, length, last_row;
  // row_hypothesis, row_position, row_keys, row_slot, row_memory_begin, row_memory_length
  std::vector<std::vector<std::int32_t>> columns;
  std::int32_t count[2] = {-1, -1};
};

struct StepShape {
  std::vector<std::int32_t> parents, tokens;  // of each hypothesis; no parents: the first step
  bool one_token_each = false;                // passes no offsets
  bool memory = true;
};

class ExtendedSlots {
 public:
  // Runs the kernel and compares its outputs with the reference lists.
  void step(const StepShape& shape) {
    const auto hypotheses = static_cast<std::int64_t>(shape.tokens.size());
    std::vector<std::int32_t> offsets{0};
    for (const std::int32_t tokens : shape.tokens) offsets.push_back(offsets.back() + tokens);
    lists_.extend(shape.parents, shape.tokens);
    const std::vector<std::int32_t>& unit = lists_.units;
    std::vector<kernels::UnitSlots> units;
    for (std::size_t u = 0; u < kUnits; ++u) {
      units.push_back(
          {.prompt = u < lists_.prompts.size() ? static_cast<std::int32_t>(lists_.prompts[u]) : 0,
           .memory_begin = shape.memory ? kMemoryBegin[u] : 0,
           .memory_length = shape.memory ? kMemoryLength[u] : 0});
    }
    const std::int64_t capacity = offsets.back() + 4, stride = old_stride_ + 5;
    SlotStep written(hypotheses, capacity, stride);
    const bool first = shape.parents.empty();
    kernels::run(ctx_, ExtendSlots{.hypotheses = hypotheses,
                                   .hypotheses_per_unit = kWidth,
                                   .capacity = capacity,
                                   .parent = first ? nullptr : shape.parents.data(),
                                   .unit = unit.data(),
                                   .offset = shape.one_token_each ? nullptr : offsets.data(),
                                   .old_slot = first ? nullptr : old_.slot.data(),
                                   .old_stride = old_stride_,
                                   .old_length = first ? nullptr : old_.length.data(),
                                   .units = units.data(),
                                   .block = blocks_.data(),
                                   .block_stride = kBlocks,
                                   .block_slots = kBlockSlots,
                                   .slot = written.slot.data(),
                                   .stride = stride,
                                   .length = written.length.data(),
                                   .row_hypothesis = written.columns[0].data(),
                                   .row_position = written.columns[1].data(),
                                   .row_keys = written.columns[2].data(),
                                   .row_slot = written.columns[3].data(),
                                   .row_memory_begin = written.columns[4].data(),
                                   .row_memory_length = written.columns[5].data(),
                                   .last_row = written.last_row.data(),
                                   .count = written.count});
    std::size_t row = 0;
    for (std::size_t h = 0; h < shape.tokens.size(); ++h) {
      const std::vector<std::int32_t>& list = lists_.hypotheses[h];
      const auto length = static_cast<std::int32_t>(list.size());
      ASSERT_EQ(written.length[h], length);
      EXPECT_EQ(subrange(written.slot, static_cast<std::int64_t>(h) * stride, length), list);
      for (std::int32_t i = 0; i < shape.tokens[h]; ++i, ++row) {
        const std::int32_t position = length - shape.tokens[h] + i;
        EXPECT_EQ(written.columns[0][row], static_cast<std::int32_t>(h));
        EXPECT_EQ(written.columns[1][row], position);
        EXPECT_EQ(written.columns[2][row], position + 1);
        EXPECT_EQ(written.columns[3][row], list[static_cast<std::size_t>(position)]);
        EXPECT_EQ(written.columns[4][row], shape.memory ? kMemoryBegin[unit[h]] : 0);
        EXPECT_EQ(written.columns[5][row], shape.memory ? kMemoryLength[unit[h]] : 0);
      }
      EXPECT_EQ(written.last_row[h], static_cast<std::int32_t>(row) - 1);
    }
    for (const auto& column : written.columns) {
      expect_zero_from("the tail", column, static_cast<std::int64_t>(row));
    }
    EXPECT_EQ(written.count[0], static_cast<std::int32_t>(row));
    EXPECT_EQ(written.count[1], hypotheses);
    old_ = std::move(written);
    old_stride_ = stride;
  }

 private:
  std::vector<std::vector<std::int32_t>> slots_of_units() const {
    std::vector<std::vector<std::int32_t>> slots(kUnits);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      for (std::int32_t j = 0; j < kBlockSlots; ++j) {
        slots[i / kBlocks].push_back(blocks_[i] * static_cast<std::int32_t>(kBlockSlots) + j);
      }
    }
    return slots;
  }

  static constexpr std::size_t kUnits = 3;
  static constexpr std::int64_t kWidth = 5, kBlocks = 20, kBlockSlots = 4;
  static constexpr std::int32_t kMemoryBegin[] = {4, 0, 11}, kMemoryLength[] = {3, 4, 9};
  CpuContext ctx_;
  // [kUnits, kBlocks], shuffled.
  std::vector<std::int32_t> blocks_ = shuffled(kUnits * kBlocks);
  reference::Slots lists_{.width = kWidth, .unit_slots = slots_of_units()};
  SlotStep old_{0, 0, 0};
  std::int64_t old_stride_ = 0;
};

TEST(ExtendSlots, MatchesTheReferenceLists) {
  ExtendedSlots slots;
  slots.step({.tokens = {1, 1, 1}, .one_token_each = true});
  slots.step({.parents = {2, 0, 1}, .tokens = {1, 1, 1}, .one_token_each = true});
  slots.step({.parents = {1, 1, 1, 1}, .tokens = {1, 1, 1, 1}});  // one parent for all
  slots.step({.parents = {3}, .tokens = {1}, .one_token_each = true});
  slots.step({.parents = {0, 0}, .tokens = {4, 2}});  // several tokens per hypothesis
  slots.step({.parents = {1, 0, 1}, .tokens = {1, 3, 1}});
}

TEST(ExtendSlots, PromptsMayDifferInLength) {
  ExtendedSlots slots;
  slots.step({.tokens = {3, 1, 5}});
  slots.step({.parents = {2, 2, 0, 1}, .tokens = {1, 1, 1, 1}, .one_token_each = true});
}

TEST(ExtendSlots, WorksWithoutASource) {
  ExtendedSlots slots;
  slots.step({.tokens = {1, 2}, .memory = false});
  slots.step({.parents = {1}, .tokens = {1}, .one_token_each = true, .memory = false});
}

}  // namespace
}  // namespace nunchi::testing
