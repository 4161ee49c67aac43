#include "nunchi/kernels/next_hypotheses.h"

#include "tests/kernels/cuda/compare.h"
#include "tests/kernels/cuda/unit_options.h"
#include "tests/kernels/cuda/values.h"

namespace nunchi::testing {
namespace {

struct Setup {
  std::int64_t units = 1, beam = 1, vocabulary = 300;
  std::int64_t no_repeat_ngram = 0;
  float end_logit = 0;  // added to the logit of </s>
  bool counted = true;  // the number of active units is read from device memory
};

constexpr std::int32_t kBegin = 1, kEnd = 2;
constexpr std::int64_t kWidth = 64, kLongest = 12;

// All results of a step, concatenated.
struct StepResult {
  std::int32_t active = 0;
  std::vector<std::int32_t> numbers;
  std::vector<double> scores;
};

// A search with random hidden rows on one device. All elements are small integers divided by powers
// of two, so logits have the same bits in any order of additions.
class Search {
 public:
  Search(ContextBase& context, DType dtype, const Setup& setup)
      : context_(context),
        dtype_(dtype),
        setup_(setup),
        from_(*this),
        to_(*this),
        finished_(*this) {
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
    copy_from_host(std::span<const std::int32_t>(prefix),
                   from_.length.flat_slice(0, {setup.units}));
    copy_from_host(std::span<const std::int32_t>(number), from_.unit.flat_slice(0, {setup.units}));
    for (Tensor* x : {&parents_, &next_}) {
      *x = zeros(context, DType::i32, {setup.units * setup.beam});
    }
    finished_count_ = zeros(context, DType::i32, {setup.units});
    done_ = zeros(context, DType::i32, {setup.units});
    finished_length_ = zeros(context, DType::i32, {setup.units * setup.beam});
    finished_ended_ = zeros(context, DType::i32, {setup.units * setup.beam});
    auto values = grid(setup.vocabulary * kWidth, 5, 64, 1.0f / 128);
    for (std::int64_t v = 0; v < setup.vocabulary; ++v) {
      values[static_cast<std::size_t>(v * kWidth)] = v == kEnd ? setup.end_logit : 0;
    }
    table_ = rounded_tensor(context, dtype, values, {setup.vocabulary, kWidth});
    fill(from_.counts, 0);
    copy_from_host(std::span<const std::int32_t>(
                       std::vector<std::int32_t>{static_cast<std::int32_t>(setup.units), 0}),
                   from_.counts);
  }

  // Generates one more token for each of the `active` units.
  StepResult step(std::int64_t active, std::int64_t generated) {
    const std::int64_t width = generated == 0 ? 1 : setup_.beam;
    // Kernel arguments may be upper bounds.
    const std::int64_t bound = setup_.counted ? setup_.units : active, rows = bound * width;
    const std::int64_t candidates = setup_.beam == 1 ? 1 : setup_.beam + 1;
    auto values = grid(rows * kWidth, 10 + static_cast<std::uint64_t>(generated), 16, 0.125f);
    for (std::int64_t r = 0; r < rows; ++r) values[static_cast<std::size_t>(r * kWidth)] = 1;
    const Tensor hidden = rounded_tensor(context_, dtype_, values, {rows, kWidth});
    const Tensor log_probs = unwritten_tensor(context_, DType::f32, {rows, candidates});
    const Tensor ids = Tensor::empty(context_, DType::i32, {rows, candidates});
    const Tensor banned = unwritten_tensor(context_, DType::f64, {rows});
    fill(ids, 0);
    kernels::StepCounts counts{.steps = from_.counts.data<std::int32_t>() + 1, .width = width};
    if (setup_.counted) counts.active = from_.counts.data<std::int32_t>();
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
                                                      .hypotheses = from_.rows(),
                                                      .options = options_.data(),
                                                      .any_ngram = setup_.no_repeat_ngram > 0,
                                                      .max_banned = 2,
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
                                  .from = from_.rows(),
                                  .to = to_.rows(),
                                  .finished = {.tokens = finished_.tokens.data<std::int32_t>(),
                                               .token_scores = finished_.token_scores.data<float>(),
                                               .score = finished_.score.data<double>(),
                                               .length = finished_length_.data<std::int32_t>(),
                                               .ended_by_eos = finished_ended_.data<std::int32_t>(),
                                               .count = finished_count_.data<std::int32_t>(),
                                               .unit_done = done_.data<std::int32_t>()},
                                  .parents = parents_.data<std::int32_t>(),
                                  .next = next_.data<std::int32_t>(),
                                  .active = to_.counts.data<std::int32_t>(),
                                  .steps = to_.counts.data<std::int32_t>() + 1}});
      }
    });
    std::swap(from_, to_);
    return result();
  }

 private:
  struct Hypotheses {
    Tensor tokens, token_scores, score, unit, length, counts;

    explicit Hypotheses(const Search& search) {
      const std::int64_t rows = search.setup_.units * search.setup_.beam;
      tokens = zeros(search.context_, DType::i32, {rows, kLongest + 1});
      token_scores = zeros(search.context_, DType::f32, {rows, kLongest + 1});
      score = zeros(search.context_, DType::f64, {rows});
      unit = zeros(search.context_, DType::i32, {rows});
      length = zeros(search.context_, DType::i32, {rows});
      counts = zeros(search.context_, DType::i32, {2});
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

  StepResult result() const {
    const std::vector<std::int32_t> counts = to_host<std::int32_t>(from_.counts);
    StepResult result{.active = counts[0], .numbers = {counts[1]}, .scores = {}};
    const auto append = [&](const Tensor& x, std::int64_t count) {
      const std::vector<std::int32_t> values = to_host<std::int32_t>(x);
      result.numbers.insert(result.numbers.end(), values.begin(), values.begin() + count);
    };
    const std::int64_t rows = result.active * setup_.beam, max_rows = setup_.units * setup_.beam;
    for (const Tensor* x : {&from_.unit, &from_.length, &parents_, &next_}) append(*x, rows);
    append(finished_count_, setup_.units);
    append(done_, setup_.units);
    append(finished_length_, max_rows);
    append(finished_ended_, max_rows);
    const std::vector<double> score = to_host<double>(from_.score);
    result.scores.assign(score.begin(), score.begin() + rows);
    for (const double x : to_host<double>(finished_.score)) result.scores.push_back(x);

    // Tokens past the end of a hypothesis are meaningless.
    const auto row_length = to_host<std::int32_t>(from_.length),
               length = to_host<std::int32_t>(finished_length_),
               ended = to_host<std::int32_t>(finished_ended_);
    const auto append_row = [&](const Hypotheses& from, std::int64_t row, std::int64_t tokens,
                                std::int64_t scores) {
      append(from.tokens.rows(row, 1), tokens);
      const std::vector<double> values = to_host_f64(from.token_scores.rows(row, 1));
      result.scores.insert(result.scores.end(), values.begin(), values.begin() + scores);
    };
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int32_t tokens = row_length[static_cast<std::size_t>(r)];
      append_row(from_, r, tokens, tokens);
    }
    for (std::int64_t r = 0; r < max_rows; ++r) {
      const auto row = static_cast<std::size_t>(r);
      append_row(finished_, r, length[row], length[row] + ended[row]);
    }
    return result;
  }

  ContextBase& context_;
  DType dtype_;
  Setup setup_;
  Hypotheses from_, to_, finished_;
  DeviceOptions options_;
  Tensor parents_, next_, finished_count_, done_, finished_length_, finished_ended_, table_;
};

// Compares all steps of a search on both devices.
void expect_like_cpu(const Setup& setup) {
  SCOPED_TRACE(std::to_string(setup.units) + " units, beam " + std::to_string(setup.beam) +
               ", n-grams of " + std::to_string(setup.no_repeat_ngram));
  CpuContext cpu({.threads = 2});
  CudaContext cuda;
  cuda.arena().poison();
  Search expected(cpu, DType::f32, setup), found(cuda, DType::bf16, setup);
  std::int64_t active = setup.units;
  for (std::int64_t generated = 0; active > 0; ++generated) {
    SCOPED_TRACE("step " + std::to_string(generated));
    ASSERT_LT(generated, kLongest);
    const StepResult a = expected.step(active, generated), b = found.step(active, generated);
    ASSERT_EQ(a.active, b.active);
    ASSERT_EQ(a.numbers, b.numbers);
    expect_near(b.scores, a.scores, 1e-5);
    active = a.active;
  }
}

TEST(NextHypothesesOnGpu, MatchTheCpu) {
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

// The fused kernels do not support wide beams and bans that need all logits.
TEST(NextHypothesesOnGpu, UnfusedKernelsMatchTheCpu) {
  SKIP_WITHOUT_GPU();
  expect_like_cpu({.units = 5, .beam = 20, .end_logit = 3});
  expect_like_cpu({.units = 40, .beam = 2, .no_repeat_ngram = 1, .end_logit = 3});
}

}  // namespace
}  // namespace nunchi::testing
