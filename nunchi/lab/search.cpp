#include "nunchi/lab/search.h"

#include <fmt/format.h>

#include <array>
#include <chrono>

#include "nunchi/lab/tasks.h"

namespace nunchi::lab {
namespace {

constexpr std::int32_t kTypes = 6, kSymbols = 3, kEndings = 8, kTests = 100;
constexpr std::array kBeams = {1, 2, 4, 8};

// Words of the target: the safe opening of each source word and its only ending, tempting openings,
// and the many endings that follow those.
constexpr std::int32_t kSafe = kFirstWord + kTypes;
constexpr std::int32_t kSafeEnding = kSafe + kTypes;
constexpr std::int32_t kTempting = kSafeEnding + kTypes;
constexpr std::int32_t kMaxTempting = 4;
constexpr std::int32_t kEnding = kTempting + kMaxTempting;
constexpr std::int64_t kWords = kEnding + kEndings - kFirstWord;

// One, two or four openings are each likelier than the safe one.
int tempting_count(std::int32_t type) { return 1 << (type % 3); }
double safe_probability(std::int32_t type) {
  return std::array{0.40, 0.28, 0.16}[static_cast<std::size_t>(type % 3)];
}

// Each source word becomes two words. The safe opening has one ending; each tempting opening is
// likelier, but then eight endings share its probability.
Example garden_path(Draws& draws) {
  Example example;
  for (int i = 0; i < kSymbols; ++i) {
    const std::int32_t type = draws.below(kTypes);
    example.source.push_back(kFirstWord + type);
    if (draws.uniform() < safe_probability(type)) {
      example.target.insert(example.target.end(), {kSafe + type, kSafeEnding + type});
    } else {
      example.target.insert(example.target.end(), {kTempting + draws.below(tempting_count(type)),
                                                   kEnding + draws.below(kEndings)});
    }
  }
  return example;
}

// The likeliest target of the source: always the safe one.
Example likeliest(Draws& draws) {
  Example example = garden_path(draws);
  example.target.clear();
  for (const std::int32_t word : example.source) {
    const std::int32_t type = word - kFirstWord;
    example.target.insert(example.target.end(), {kSafe + type, kSafeEnding + type});
  }
  return example;
}

Verdict judge(const Figures& f) {
  const bool better = f["likeliest_1"] <= 0.5 && f["likeliest_8"] >= f["likeliest_1"] + 0.3;
  const bool slower = f["ms_8"] > f["ms_1"];
  return verdict_of(better, slower);
}

Result run(const Options& options) {
  using Clock = std::chrono::steady_clock;
  Experiment experiment(options, small_transformer(kWords), Task::translate);
  experiment.train({.steps = 1200, .batch = 64}, garden_path, {"training", 0, 0.9});
  const std::vector<Example> tests = make_examples(options, likeliest, options.scaled(kTests, 4));
  Result result;
  result.table.columns = {"beam_size", "likeliest_found", "log_probability", "ms_per_sentence"};
  Bars found_bars, time_bars, score_bars;
  std::vector<std::string> names;
  for (const int beam : kBeams) {
    options.report({"searching", 0.9 + 0.01 * beam});
    const SearchOptions search{.beam_size = beam, .normalize = 0};
    experiment.search(tests, search);  // the first search plans its products
    const Clock::time_point start = Clock::now();
    const std::vector<Hypotheses> hypotheses = experiment.search(tests, search);
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count() /
                      static_cast<double>(tests.size());
    std::vector<Tokens> found;
    double log_probability = 0;
    for (const Hypotheses& best : hypotheses) {
      found.push_back(best[0].tokens);
      log_probability += best[0].log_probability / static_cast<double>(tests.size());
    }
    const double likeliest_found = exact_share(tests, found);
    found_bars.values.push_back(likeliest_found);
    time_bars.values.push_back(ms);
    score_bars.values.push_back(log_probability);
    names.push_back(beam == 1 ? both("greedy", "그리디") : fmt::format("beam {0} · 빔 {0}", beam));
    result.figures.set(fmt::format("likeliest_{}", beam), likeliest_found);
    result.figures.set(fmt::format("log_probability_{}", beam), log_probability);
    result.figures.set(fmt::format("ms_{}", beam), ms);
    result.table.add(
        {std::to_string(beam), cell(likeliest_found), cell(log_probability), cell(ms)});
  }
  result.charts = {
      bar_chart(both("Likeliest translation found", "가장 가능성 높은 번역을 찾은 비율"), names,
                {.label = both("share", "비율"), .low = 0, .high = 1.05}, {found_bars}),
      bar_chart(both("Log-probability of the result", "결과의 로그 확률"), names,
                {.label = both("log-probability (nats)", "로그 확률(nat)")}, {score_bars}),
      bar_chart(both("Time", "시간"), names,
                {.label = both("ms for a sentence", "문장당 ms"), .low = 0}, {time_bars})};
  const Figures& f = result.figures;
  result.finding = {
      fmt::format("The likeliest translation is found by greedy search in {:.0f}% of the "
                  "sentences, by beams of 2, 4 and 8 in {:.0f}%, {:.0f}% and {:.0f}%; the time for "
                  "a sentence is {:.2f}, {:.2f}, {:.2f} and {:.2f} ms.",
                  100 * f["likeliest_1"], 100 * f["likeliest_2"], 100 * f["likeliest_4"],
                  100 * f["likeliest_8"], f["ms_1"], f["ms_2"], f["ms_4"], f["ms_8"]),
      fmt::format("가장 가능성 높은 번역을 그리디는 문장의 {:.0f}%, 빔 2, 4, 8은 {:.0f}%, {:.0f}%, "
                  "{:.0f}%에서 찾습니다. 문장당 시간은 {:.2f}, {:.2f}, {:.2f}, {:.2f} ms입니다.",
                  100 * f["likeliest_1"], 100 * f["likeliest_2"], 100 * f["likeliest_4"],
                  100 * f["likeliest_8"], f["ms_1"], f["ms_2"], f["ms_4"], f["ms_8"])};
  result.not_shown = {
      "The language is made so that a tempting first word leads astray. In real translation greedy "
      "search fails less often, and the likeliest translation is not always the best one.",
      "이 언어는 솔깃한 첫 단어가 길을 잘못 들게 하도록 만들었습니다. 실제 번역에서 그리디가 "
      "실패하는 일은 이보다 드물고, 가장 가능성 높은 번역이 늘 가장 좋은 번역인 것도 아닙니다."};
  return result;
}

}  // namespace

Lab search_lab() {
  return {
      .name = "search",
      .note = notes::kTraining,
      .question = {"Where does greedy search fail, and what does a beam cost?",
                   "그리디는 어디에서 실패하고 빔 서치의 비용은 얼마일까?"},
      .claim = {"Greedy decoding is simple but may miss the global optimum; beam search keeps "
                "several candidates, is more accurate and slower.",
                "그리디 디코딩은 단순하지만 전역 최적이 아닐 수 있다. 빔 서치는 여러 후보를 유지해 "
                "정확도는 높지만 속도는 느려진다."},
      .rule = {"It holds if greedy search finds at most half of the likeliest translations and a "
               "beam of 8 at least 30 points more, and if that beam is slower; partly with one of "
               "the two, and it fails with none.",
               "그리디가 가장 가능성 높은 번역을 절반 이하로 찾고 빔 8이 30%p 이상 더 찾으며 빔 "
               "8이 더 느리면 성립, 둘 중 하나만이면 부분 성립, 둘 다 아니면 성립하지 않습니다."},
      .judge = judge,
      .run = run};
}

}  // namespace nunchi::lab
