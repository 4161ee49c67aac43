#include "nunchi/kernels/next_hypotheses.h"

#include "tests/kernels/cuda/compare.h"
#include "tests/kernels/cuda/unit_options.h"
#include "tests/kernels/cuda/values.h"

namespace nunchi::testing {
namespace {

struct Setup {
  std::int64_t units = 1, beam = 1, vocabulary = 300;
  std::int64_t no_repeat_ngram = 0;
  float end_logit = 0;  // added to </s>'s
  bool counted = true;  // how many units go on is read from device memory
};

constexpr std::int32_t kBegin = 1, kEnd = 2;
constexpr std::int64_t kWidth = 64, kLongest = 12;

// What a step leaves.
struct Left {
  std::int32_t active = 0;
  std::vector<std::int32_t> numbers;
  std::vector<double> scores;
};

// A search with invented hidden rows on one device. All are small numbers over powers of two:
// logits are the same to the bit in whatever order they are added.
class Steps {
 public:
  Steps(ContextBase& context, DType dtype, const Setup& setup)
      : context_(context), dtype_(dtype), setup_(setup), now_(*this), then_(*this), ended_(*this) {
    std::vector<std::int32_t> prefix, number;
    std::vector<kernels::UnitOptions> options;
    for (std::int64_t u = 0; u < setup.units; ++u) {
      prefix.push_back(static_cast<std::int32_t>(u % 3));
      options.push_back({.min_length = static_cast<std::int32_t>(u % 4),
                         .max_length = static_cast<std::int32_t>(kLongest - u % 5),
                         .no_repeat_ngram = static_cast<std::int32_t>(setup.no_repeat_ngram),
                         .max_repeats = 8});
      number.push_back(static_cast<std::int32_t>(u));
    }
    options_ = {context, options};
    copy_from_host(std::span<const std::int32_t>(prefix), now_.length.part(0, {setup.units}));
    copy_from_host(std::span<const std::int32_t>(number), now_.unit.part(0, {setup.units}));
    for (Tensor* x : {&parents_, &next_}) {
      *x = zeros(context, DType::i32, {setup.units * setup.beam});
    }
    count_ = zeros(context, DType::i32, {setup.units});
    done_ = zeros(context, DType::i32, {setup.units});
    length_ = zeros(context, DType::i32, {setup.units * setup.beam});
    by_end_ = zeros(context, DType::i32, {setup.units * setup.beam});
    auto values = grid(setup.vocabulary * kWidth, 5, 64, 1.0f / 128);
    for (std::int64_t v = 0; v < setup.vocabulary; ++v) {
      values[static_cast<std::size_t>(v * kWidth)] = v == kEnd ? setup.end_logit : 0;
    }
    table_ = rounded_tensor(context, dtype, values, {setup.vocabulary, kWidth});
    fill(now_.counts, 0);
    copy_from_host(std::span<const std::int32_t>(
                       std::vector<std::int32_t>{static_cast<std::int32_t>(setup.units), 0}),
                   now_.counts);
  }

  // One token more for each of `active` units.
  Left step(std::int64_t active, std::int64_t generated) {
    const std::int64_t width = generated == 0 ? 1 : setup_.beam;
    // Bounds may be more than there are.
    const std::int64_t bound = setup_.counted ? setup_.units : active, rows = bound * width;
    const std::int64_t candidates = setup_.beam == 1 ? 1 : setup_.beam + 1;
    auto values = grid(rows * kWidth, 10 + static_cast<std::uint64_t>(generated), 16, 0.125f);
    for (std::int64_t r = 0; r < rows; ++r) values[static_cast<std::size_t>(r * kWidth)] = 1;
    const Tensor hidden = rounded_tensor(context_, dtype_, values, {rows, kWidth});
    const Tensor log_probs = unwritten_tensor(context_, DType::f32, {rows, candidates});
    const Tensor ids = Tensor::empty(context_, DType::i32, {rows, candidates});
    const Tensor banned = unwritten_tensor(context_, DType::f64, {rows});
    fill(ids, 0);
    kernels::StepCounts counts{.steps = now_.counts.data<std::int32_t>() + 1, .width = width};
    if (setup_.counted) counts.active = now_.counts.data<std::int32_t>();
    dispatch(hidden, [&]<class T>(auto& ctx) {
      if constexpr (std::is_same_v<Accumulator<T>, float>) {
        kernels::run(ctx,
                     kernels::NextHypotheses<T>{
                         .top = {.product = {.m = rows,
                                             .n = setup_.vocabulary,
                                             .k = kWidth,
                                             .a = hidden.data<T>(),
                                             .b = table_.data<T>(),
                                             .transpose_b = true},
                                 .allowed = {.bans = {.rows = rows,
                                                      .vocabulary = setup_.vocabulary,
                                                      .stride = kLongest + 1,
                                                      .suppressed_token = kBegin,
                                                      .end_token = kEnd,
                                                      .counts = counts,
                                                      .hypotheses = now_.rows(),
                                                      .options = options_.data(),
                                                      .any_ngram = setup_.no_repeat_ngram > 0,
                                                      .most_banned = 2,
                                                      .banned = banned.data<double>()},
                                             .top = {.rows = rows,
                                                     .vocabulary = setup_.vocabulary,
                                                     .count = candidates,
                                                     .banned = banned.data<double>(),
                                                     .log_probs = log_probs.data<float>(),
                                                     .ids = ids.data<std::int32_t>()}}},
                         .step = {.units = bound,
                                  .width = width,
                                  .beam = setup_.beam,
                                  .candidates = candidates,
                                  .stride = kLongest + 1,
                                  .counts = counts,
                                  .end_token = kEnd,
                                  .log_probs = log_probs.data<float>(),
                                  .ids = ids.data<std::int32_t>(),
                                  .options = options_.data(),
                                  .from = now_.rows(),
                                  .to = then_.rows(),
                                  .finished = {.tokens = ended_.tokens.data<std::int32_t>(),
                                               .token_scores = ended_.token_scores.data<float>(),
                                               .score = ended_.score.data<double>(),
                                               .length = length_.data<std::int32_t>(),
                                               .ended = by_end_.data<std::int32_t>(),
                                               .count = count_.data<std::int32_t>(),
                                               .done = done_.data<std::int32_t>()},
                                  .parents = parents_.data<std::int32_t>(),
                                  .next = next_.data<std::int32_t>(),
                                  .active = then_.counts.data<std::int32_t>(),
                                  .steps = then_.counts.data<std::int32_t>() + 1}});
      }
    });
    std::swap(now_, then_);
    return left();
  }

 private:
  struct Hypotheses {
    Tensor tokens, token_scores, score, unit, length, counts;

    explicit Hypotheses(const Steps& of) {
      const std::int64_t rows = of.setup_.units * of.setup_.beam;
      tokens = zeros(of.context_, DType::i32, {rows, kLongest + 1});
      token_scores = zeros(of.context_, DType::f32, {rows, kLongest + 1});
      score = zeros(of.context_, DType::f64, {rows});
      unit = zeros(of.context_, DType::i32, {rows});
      length = zeros(of.context_, DType::i32, {rows});
      counts = zeros(of.context_, DType::i32, {2});
    }
    kernels::SearchRows rows() const {
      return {tokens.data<std::int32_t>(), token_scores.data<float>(), score.data<double>(),
              unit.data<std::int32_t>(), length.data<std::int32_t>()};
    }
  };

  static std::vector<float> grid(std::int64_t count, std::uint64_t seed, int levels, float step) {
    std::vector<float> values;
    for (const double x : random_values<double>(count, seed)) {
      values.push_back(static_cast<float>(std::floor(x * levels)) * step);
    }
    return values;
  }

  Left left() const {
    const std::vector<std::int32_t> counts = to_host<std::int32_t>(now_.counts);
    Left left{.active = counts[0], .numbers = {counts[1]}, .scores = {}};
    const auto take = [&](const Tensor& x, std::int64_t count) {
      const std::vector<std::int32_t> all = to_host<std::int32_t>(x);
      left.numbers.insert(left.numbers.end(), all.begin(), all.begin() + count);
    };
    const std::int64_t rows = left.active * setup_.beam, most = setup_.units * setup_.beam;
    for (const Tensor* x : {&now_.unit, &now_.length, &parents_, &next_}) take(*x, rows);
    take(count_, setup_.units);
    take(done_, setup_.units);
    take(length_, most);
    take(by_end_, most);
    const std::vector<double> now = to_host<double>(now_.score);
    left.scores.assign(now.begin(), now.begin() + rows);
    for (const double x : to_host<double>(ended_.score)) left.scores.push_back(x);

    // Tokens behind the end of a hypothesis mean nothing.
    const auto row_length = to_host<std::int32_t>(now_.length),
               length = to_host<std::int32_t>(length_), by_end = to_host<std::int32_t>(by_end_);
    const auto take_row = [&](const Hypotheses& from, std::int64_t row, std::int64_t tokens,
                              std::int64_t scores) {
      take(from.tokens.rows(row, 1), tokens);
      const std::vector<double> all = to_host_f64(from.token_scores.rows(row, 1));
      left.scores.insert(left.scores.end(), all.begin(), all.begin() + scores);
    };
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int32_t tokens = row_length[static_cast<std::size_t>(r)];
      take_row(now_, r, tokens, tokens);
    }
    for (std::int64_t r = 0; r < most; ++r) {
      const auto at = static_cast<std::size_t>(r);
      take_row(ended_, r, length[at], length[at] + by_end[at]);
    }
    return left;
  }

  ContextBase& context_;
  DType dtype_;
  Setup setup_;
  Hypotheses now_, then_, ended_;
  DeviceOptions options_;
  Tensor parents_, next_, count_, done_, length_, by_end_, table_;
};

// From the first step on until all have ended, on both devices.
void expect_like_cpu(const Setup& setup) {
  SCOPED_TRACE(std::to_string(setup.units) + " units, beam " + std::to_string(setup.beam) +
               ", n-grams of " + std::to_string(setup.no_repeat_ngram));
  CpuContext cpu({.threads = 2});
  CudaContext cuda;
  cuda.arena().poison();
  Steps expected(cpu, DType::f32, setup), found(cuda, DType::bf16, setup);
  std::int64_t active = setup.units;
  for (std::int64_t generated = 0; active > 0; ++generated) {
    SCOPED_TRACE("step " + std::to_string(generated));
    ASSERT_LT(generated, kLongest);
    const Left a = expected.step(active, generated), b = found.step(active, generated);
    ASSERT_EQ(a.active, b.active);
    ASSERT_EQ(a.numbers, b.numbers);
    expect_near(b.scores, a.scores, 1e-5);
    active = a.active;
  }
}

TEST(NextHypothesesOnGpu, AreTheCpus) {
  SKIP_WITHOUT_GPU();
  for (const bool counted : {true, false}) {
    for (const std::int64_t beam : {1, 2, 4, 5, 13}) {
      for (const std::int64_t units : {1, 3, 33, 70}) {
        expect_like_cpu({.units = units, .beam = beam, .end_logit = 3, .counted = counted});
      }
    }
  }
  expect_like_cpu({.units = 300, .beam = 3, .end_logit = 4});
}

// Beams that are too wide, and bans that need all scores.
TEST(NextHypothesesOnGpu, AreTheCpusOneKernelAfterAnother) {
  SKIP_WITHOUT_GPU();
  expect_like_cpu({.units = 5, .beam = 20, .end_logit = 3});
  expect_like_cpu({.units = 40, .beam = 2, .no_repeat_ngram = 1, .end_logit = 3});
}

}  // namespace
}  // namespace nunchi::testing
