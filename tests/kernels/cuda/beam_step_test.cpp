#include <algorithm>

#include "nunchi/kernels/search.h"
#include "tests/kernels/cuda/compare.h"
#include "tests/kernels/cuda/unit_options.h"
#include "tests/kernels/cuda/values.h"

namespace nunchi::testing {
namespace {

constexpr std::int32_t kBegin = 1, kEnd = 2;

struct BanRules {
  std::int32_t suppressed_token = kBegin, end_token = kEnd;
  std::int64_t min_length = 0, no_repeat_ngram = 0, max_repeats = 0;
};

struct Banned {
  std::vector<double> logits, banned;
};

// Random hypotheses of few different tokens, so that there are many repetitions; every second one
// is a cycle.
struct BanInputs {
  static constexpr std::int64_t kRows = 37, kStride = 160;
  Tensor logits, tokens, units, lengths, banned;
  BanRules rules;
  DeviceOptions options;

  BanInputs(ContextBase& context, DType dtype, std::int64_t vocabulary, const BanRules& given,
            std::int32_t generated)
      : rules(given) {
    const std::vector<std::int32_t> prefix_length = {0, 5, 1, 9};  // of each unit
    std::vector<std::int32_t> histories, unit, length;
    for (std::int64_t r = 0; r < kRows; ++r) {
      unit.push_back(static_cast<std::int32_t>(r % 4));
      length.push_back(prefix_length[static_cast<std::size_t>(r % 4)] + generated);
      const auto draws = random_values<double>(kStride, 70 + static_cast<std::uint64_t>(r));
      for (std::int64_t i = 0; i < kStride; ++i) {
        const double u = (draws[static_cast<std::size_t>(i)] + 1) / 2;
        histories.push_back(static_cast<std::int32_t>(
            r % 2 == 0 ? 3 + i % (r / 2 % 9 + 1) : static_cast<std::int64_t>(u * 9)));
      }
    }
    auto values = random_values<float>(kRows * vocabulary, 1, 3);
    values[2 * vocabulary + 4] = values[6 * vocabulary + kBegin] = -INFINITY;
    logits = rounded_tensor(context, dtype, values, {kRows, vocabulary});
    tokens = from_host(context, histories, {kRows, kStride});
    units = from_host(context, unit, {kRows});
    lengths = from_host(context, length, {kRows});
    // The last unit has its own rules.
    std::vector<kernels::UnitOptions> all(
        4, {.min_length = static_cast<std::int32_t>(rules.min_length),
            .no_repeat_ngram = static_cast<std::int32_t>(rules.no_repeat_ngram),
            .max_repeats = static_cast<std::int32_t>(rules.max_repeats)});
    all[3].min_length += 11;
    if (rules.max_repeats > 0) ++all[3].max_repeats;
    if (rules.no_repeat_ngram > 0) all[3].no_repeat_ngram = 0;
    options = {context, all};
    banned = unwritten_tensor(context, DType::f64, {kRows});
  }

  template <class T>
  kernels::BanTokens<T> bans() const {
    return {.rows = kRows,
            .vocabulary = logits.size(1),
            .stride = kStride,
            .suppressed_token = rules.suppressed_token,
            .end_token = rules.end_token,
            .hypotheses = {.tokens = tokens.data<std::int32_t>(),
                           .unit = units.data<std::int32_t>(),
                           .length = lengths.data<std::int32_t>()},
            .options = options.data(),
            .any_ngram = rules.no_repeat_ngram > 0,
            .max_banned = kernels::UnitOptions::kLongestCycle + 1,
            .logits = logits.data<T>(),
            .banned = banned.data<double>()};
  }
};

Banned ban(ContextBase& context, DType dtype, const BanRules& rules, std::int32_t generated) {
  const BanInputs inputs(context, dtype, 13, rules, generated);
  dispatch(inputs.logits, [&]<class T>(auto& ctx) { kernels::run(ctx, inputs.bans<T>()); });
  return {to_host_f64(inputs.logits), to_host_f64(inputs.banned)};
}

struct TopAllowedResult {
  std::vector<std::int32_t> ids;
  std::vector<double> log_probs;
};

TopAllowedResult top_allowed(ContextBase& context, DType dtype, const BanRules& rules,
                             std::int64_t vocabulary) {
  constexpr std::int64_t kCount = 3;
  const BanInputs inputs(context, dtype, vocabulary, rules, 40);
  const Tensor log_probs =
      unwritten_tensor(context, accumulator_type(dtype), {BanInputs::kRows, kCount});
  const Tensor ids = zeros(context, DType::i32, {BanInputs::kRows, kCount});
  dispatch(inputs.logits, [&]<class T>(auto& ctx) {
    kernels::run(ctx,
                 kernels::TopAllowedTokens<T>{.bans = inputs.bans<T>(),
                                              .top = {.rows = BanInputs::kRows,
                                                      .vocabulary = vocabulary,
                                                      .count = kCount,
                                                      .logits = inputs.logits.data<T>(),
                                                      .banned = inputs.banned.data<double>(),
                                                      .log_probs = log_probs.data<Accumulator<T>>(),
                                                      .ids = ids.data<std::int32_t>()}});
  });
  return {to_host<std::int32_t>(ids), to_host_f64(log_probs)};
}

TEST(BanTokensOnGpu, MatchTheCpu) {
  SKIP_WITHOUT_GPU();
  CpuContext cpu;
  CudaContext cuda;
  std::vector<BanRules> all_rules = {{}};
  for (const std::int64_t n : {1, 2, 3, 4, 9}) all_rules.push_back({.no_repeat_ngram = n});
  for (const std::int64_t repeats : {1, 2, 3, 8}) all_rules.push_back({.max_repeats = repeats});
  for (const std::int64_t length : {1, 5, 14, 1000}) all_rules.push_back({.min_length = length});
  all_rules.push_back({.suppressed_token = 0,
                       .end_token = 4,
                       .min_length = 9,
                       .no_repeat_ngram = 2,
                       .max_repeats = 2});
  for (const std::int32_t generated : {0, 1, 2, 8, 30, 100, 150}) {
    for (const BanRules& rules : all_rules) {
      SCOPED_TRACE(std::to_string(generated) + " tokens, n-grams of " +
                   std::to_string(rules.no_repeat_ngram) + ", repeats " +
                   std::to_string(rules.max_repeats));
      const Banned expected = ban(cpu, DType::f32, rules, generated);
      for (const DType dtype : {DType::f32, DType::bf16}) {
        const Banned found = ban(cuda, dtype, rules, generated);
        EXPECT_EQ(found.logits, expected.logits);
        expect_near(found.banned, expected.banned, 1e-12);
      }
    }
  }
}

// Rows of one vocabulary chunk and of several.
TEST(TopAllowedOnGpu, MatchTheCpu) {
  SKIP_WITHOUT_GPU();
  CpuContext cpu;
  CudaContext cuda;
  for (const std::int64_t vocabulary : {14, 1001, 9000}) {
    for (const BanRules& rules :
         {BanRules{}, BanRules{.max_repeats = 2}, BanRules{.min_length = 43},
          BanRules{.suppressed_token = 0, .end_token = 4, .min_length = 90, .max_repeats = 3},
          BanRules{.no_repeat_ngram = 2, .max_repeats = 2}}) {
      SCOPED_TRACE(std::to_string(vocabulary) + " tokens, repeats " +
                   std::to_string(rules.max_repeats));
      const TopAllowedResult expected = top_allowed(cpu, DType::f32, rules, vocabulary);
      for (const DType dtype : {DType::f32, DType::bf16}) {
        const TopAllowedResult found = top_allowed(cuda, dtype, rules, vocabulary);
        EXPECT_EQ(found.ids, expected.ids);
        expect_near(found.log_probs, expected.log_probs, 1e-5);
      }
    }
  }
}

struct BeamSetup {
  std::int64_t units = 1, beam = 1, candidates = 1;
  double end_rate = 0.2;         // probability that </s> is among a row's candidates
  double impossible_rate = 0.0;  // probability that a candidate has the score -inf
  int levels = 0;                // number of different scores, so that sums are equal; 0: any
  std::int32_t longest = 40;
};

// A search with random scores on one device.
class BeamSearch {
 public:
  BeamSearch(ContextBase& context, const BeamSetup& setup)
      : context_(context), setup_(setup), stride_(setup.longest + 1) {
    std::vector<std::int32_t> prefix, number;
    std::vector<kernels::UnitOptions> options;
    std::vector<std::int32_t> tokens(index(all_rows() * stride_), -1);
    for (std::int64_t u = 0; u < setup.units; ++u) {
      prefix.push_back(static_cast<std::int32_t>(u * 5 % 4));
      options.push_back(
          {.max_length = std::max<std::int32_t>(
               prefix.back() + 1, setup.longest - static_cast<std::int32_t>(u * 7 % 23))});
      number.push_back(static_cast<std::int32_t>(u));
      for (std::int32_t i = 0; i < prefix.back(); ++i) tokens[index(u * stride_ + i)] = 3 + i;
    }
    options_ = {context, options};
    from_ = rows();
    to_ = rows();
    finished_ = rows();
    copy_from_host(std::span<const std::int32_t>(tokens), from_.tokens);
    fill(from_.token_scores, 0);
    fill(from_.score, 0);
    number.resize(index(all_rows()), -1);
    prefix.resize(index(all_rows()), -1);
    copy_from_host(std::span<const std::int32_t>(number), from_.unit);
    copy_from_host(std::span<const std::int32_t>(prefix), from_.length);
    length_ = integers(all_rows()), ended_ = integers(all_rows());
    count_ = zeros(context, DType::i32, {setup.units});
    done_ = zeros(context, DType::i32, {setup.units});
  }

  // Runs a step with the candidates `log_probs` and `ids` and returns all its results,
  // concatenated; the first is the number of active units.
  std::vector<double> step(std::int64_t units, std::int64_t width,
                           const std::vector<float>& log_probs,
                           const std::vector<std::int32_t>& ids) {
    const Tensor scores = from_host(context_, log_probs, {units * width, setup_.candidates});
    const Tensor tokens = from_host(context_, ids, {units * width, setup_.candidates});
    const Tensor parents = integers(units * setup_.beam), next = integers(units * setup_.beam),
                 active = integers(1);
    on_device(context_, [&](auto& ctx) {
      kernels::run(ctx, kernels::BeamStep<float>{
                            .units = units,
                            .width = width,
                            .beam = setup_.beam,
                            .candidates = setup_.candidates,
                            .stride = stride_,
                            .end_token = kEnd,
                            .log_probs = scores.data<float>(),
                            .ids = tokens.data<std::int32_t>(),
                            .options = options_.data(),
                            .from = from_.kernels_rows(),
                            .to = to_.kernels_rows(),
                            .finished = {.tokens = finished_.tokens.data<std::int32_t>(),
                                         .token_scores = finished_.token_scores.data<float>(),
                                         .score = finished_.score.data<double>(),
                                         .length = length_.data<std::int32_t>(),
                                         .ended_by_eos = ended_.data<std::int32_t>(),
                                         .count = count_.data<std::int32_t>(),
                                         .unit_done = done_.data<std::int32_t>()},
                            .parents = parents.data<std::int32_t>(),
                            .next = next.data<std::int32_t>(),
                            .active = active.data<std::int32_t>()});
    });
    std::swap(from_, to_);
    const std::int64_t active_units = to_host<std::int32_t>(active)[0];
    std::vector<double> results{static_cast<double>(active_units)};
    const std::int64_t rows = active_units * setup_.beam;
    append(results, to_host<std::int32_t>(parents), 0, rows);
    append(results, to_host<std::int32_t>(next), 0, rows);
    append(results, to_host<double>(from_.score), 0, rows);
    append(results, to_host<std::int32_t>(from_.unit), 0, rows);
    append(results, to_host<std::int32_t>(done_), 0, setup_.units);
    const auto lengths = to_host<std::int32_t>(from_.length);
    append(results, lengths, 0, rows);
    const auto history = to_host<std::int32_t>(from_.tokens);
    const auto history_scores = to_host<float>(from_.token_scores);
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t length = lengths[index(r)];
      append(results, history, r * stride_, length);
      append(results, history_scores, r * stride_, length);
    }
    return results;
  }

  std::vector<double> finished() const {
    const auto count = to_host<std::int32_t>(count_), length = to_host<std::int32_t>(length_),
               ended = to_host<std::int32_t>(ended_);
    const auto tokens = to_host<std::int32_t>(finished_.tokens);
    const auto token_scores = to_host<float>(finished_.token_scores);
    const auto score = to_host<double>(finished_.score);
    std::vector<double> results(count.begin(), count.end());
    for (std::int64_t u = 0; u < setup_.units; ++u) {
      for (std::int64_t slot = u * setup_.beam; slot < u * setup_.beam + count[index(u)]; ++slot) {
        results.push_back(score[index(slot)]);
        results.push_back(length[index(slot)]);
        results.push_back(ended[index(slot)]);
        append(results, tokens, slot * stride_, length[index(slot)]);
        append(results, token_scores, slot * stride_, length[index(slot)] + ended[index(slot)]);
      }
    }
    return results;
  }

 private:
  struct HypothesisBuffers {
    Tensor tokens, token_scores, score, unit, length;
    kernels::SearchRows kernels_rows() const {
      return {tokens.data<std::int32_t>(), token_scores.data<float>(), score.data<double>(),
              unit.data<std::int32_t>(), length.data<std::int32_t>()};
    }
  };

  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  template <class T>
  static void append(std::vector<double>& to, const std::vector<T>& from, std::int64_t begin,
                     std::int64_t count) {
    to.insert(to.end(), from.begin() + begin, from.begin() + begin + count);
  }
  std::int64_t all_rows() const { return setup_.units * setup_.beam; }
  Tensor integers(std::int64_t count) const {
    const Tensor tensor = Tensor::empty(context_, DType::i32, {count});
    fill(tensor, -1);
    return tensor;
  }
  HypothesisBuffers rows() const {
    return {Tensor::empty(context_, DType::i32, {all_rows(), stride_}),
            Tensor::empty(context_, DType::f32, {all_rows(), stride_}),
            Tensor::empty(context_, DType::f64, {all_rows()}),
            Tensor::empty(context_, DType::i32, {all_rows()}),
            Tensor::empty(context_, DType::i32, {all_rows()})};
  }

  ContextBase& context_;
  BeamSetup setup_;
  std::int64_t stride_;
  DeviceOptions options_;
  HypothesisBuffers from_, to_, finished_;
  Tensor length_, ended_, count_, done_;
};

// Appends random candidates: descending scores and different tokens, sometimes with </s>.
void make_candidates(const BeamSetup& setup, std::int64_t rows, std::int64_t step,
                     std::vector<float>& log_probs, std::vector<std::int32_t>& ids) {
  const auto candidates = static_cast<std::size_t>(setup.candidates);
  const std::int32_t vocabulary = static_cast<std::int32_t>(setup.candidates) + 9;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto draws = random_values<double>(2 * setup.candidates + 2,
                                             static_cast<std::uint64_t>(step * 100003 + r));
    std::vector<double> scores;
    for (std::size_t c = 0; c < candidates; ++c) {
      double score = -3 * (draws[c] + 1);
      if (setup.levels > 0) score = std::floor(score / 6 * setup.levels);
      const bool impossible = (draws[candidates + c] + 1) / 2 < setup.impossible_rate;
      scores.push_back(impossible ? -INFINITY : score);
    }
    std::sort(scores.rbegin(), scores.rend());
    for (const double score : scores) log_probs.push_back(static_cast<float>(score));
    const auto first = static_cast<std::int32_t>((draws.back() + 1) / 2 * vocabulary);
    const bool ends = (draws[draws.size() - 2] + 1) / 2 < setup.end_rate;
    const auto end_at = static_cast<std::size_t>(first + r) % candidates;
    std::int32_t token = first;
    for (std::size_t c = 0; c < candidates; ++c) {
      do token = (token + 1) % vocabulary;
      while (token == kEnd);
      ids.push_back(ends && c == end_at ? kEnd : token);
    }
  }
}

void expect_search(const BeamSetup& setup) {
  SCOPED_TRACE(std::to_string(setup.units) + " units, beam " + std::to_string(setup.beam) +
               ", levels " + std::to_string(setup.levels));
  CpuContext cpu;
  CudaContext cuda;
  cuda.arena().poison();
  BeamSearch expected(cpu, setup), found(cuda, setup);
  std::int64_t units = setup.units, width = 1;
  for (std::int64_t step = 0; units > 0; ++step, width = setup.beam) {
    std::vector<float> log_probs;
    std::vector<std::int32_t> ids;
    make_candidates(setup, units * width, step, log_probs, ids);
    const std::vector<double> step_results = expected.step(units, width, log_probs, ids);
    ASSERT_EQ(found.step(units, width, log_probs, ids), step_results) << "step " << step;
    units = static_cast<std::int64_t>(step_results[0]);
  }
  EXPECT_EQ(found.finished(), expected.finished());
}

// Up to 32 units take one block; more units take several.
TEST(BeamStepOnGpu, WholeSearchesMatchTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t units : {1, 3, 32, 33, 300}) {
    expect_search({.units = units, .end_rate = 0.1});
    expect_search({.units = units, .beam = 4, .candidates = 5});
    expect_search({.units = units, .beam = 4, .candidates = 5, .end_rate = 0.7, .levels = 3});
    expect_search({.units = units, .beam = 5, .candidates = 6, .impossible_rate = 0.6});
  }
}

TEST(BeamStepOnGpu, WideBeamsMatchTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t beam : {31, 33, 64, 100}) {
    for (const std::int64_t units : {1, 7, 40}) {
      expect_search({.units = units, .beam = beam, .candidates = beam + 1, .longest = 25});
      expect_search({.units = units,
                     .beam = beam,
                     .candidates = beam + 1,
                     .end_rate = 0.9,
                     .impossible_rate = 0.3,
                     .levels = 9,
                     .longest = 25});
    }
  }
}

TEST(BeamStepOnGpu, UnitWithoutCandidatesIsDoneWithoutResults) {
  SKIP_WITHOUT_GPU();
  CpuContext cpu;
  CudaContext cuda;
  const BeamSetup setup{.units = 3, .beam = 2, .candidates = 3};
  const std::vector<std::int32_t> ids = {7, 8, kEnd, 7, 8, kEnd, 7, 8, kEnd};
  for (const float bad : {-INFINITY, NAN}) {
    const std::vector<float> log_probs = {bad, bad, bad, -1, -2, bad, bad, bad, bad};
    BeamSearch expected(cpu, setup), found(cuda, setup);
    const auto step_results = expected.step(3, 1, log_probs, ids);
    EXPECT_EQ(step_results[0], 1);
    EXPECT_EQ(found.step(3, 1, log_probs, ids), step_results);
    EXPECT_EQ(found.finished(), expected.finished());
  }
}

}  // namespace
}  // namespace nunchi::testing
