#include "nunchi/lab/learning.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "nunchi/lab/tasks.h"

namespace nunchi::lab {
namespace {

constexpr std::int64_t kWords = 20, kShown = 7, kSteps = 1000, kTests = 100;
constexpr std::array<std::int64_t, 8> kCheckpoints = {0, 50, 100, 150, 200, 400, 700, 1000};

// The target is the source backwards.
ExampleMaker reversing(std::int64_t least, std::int64_t most) {
  return [=](Draws& draws) {
    Example example = copying(least, most, kWords)(draws);
    std::ranges::reverse(example.target);
    return example;
  };
}

// The share of cross-attention, in the layer where it is largest, that is on the source word which
// the next target word repeats. Target row t, with <s> before the words, predicts word t.
double aligned_share(const Trace& trace, std::span<const Example> examples) {
  double best = 0;
  for (int layer = 0; layer < 2; ++layer) {
    const TapRecord& record =
        *trace.find(Tap::attention_weights, "decoder", layer, "cross_attention");
    double share = 0;
    for (std::size_t s = 0; s < examples.size(); ++s) {
      const Weights weights = weights_of(record, s);
      const std::int64_t length = std::ssize(examples[s].target);
      for (std::int64_t t = 0; t < length; ++t) {
        share += weights.at(t, length - 1 - t) / static_cast<double>(length * std::ssize(examples));
      }
    }
    best = std::max(best, share);
  }
  return best;
}

HeatMap attention_map(const Trace& trace, const Example& example, std::int64_t step) {
  HeatMap map{.title = fmt::format("Cross-attention at step {0} · {0}스텝의 크로스 어텐션", step),
              .x_label = both("source word", "입력 단어"),
              .y_label = both("next target word", "다음 출력 단어"),
              .value_label = both("weight", "가중치")};
  // The layer with the largest weight on the diagonal.
  Weights shown;
  double best = -1;
  for (int layer = 0; layer < 2; ++layer) {
    const Weights weights =
        weights_of(*trace.find(Tap::attention_weights, "decoder", layer, "cross_attention"), 0);
    double share = 0;
    for (std::int64_t t = 0; t < kShown; ++t) share += weights.at(t, kShown - 1 - t);
    if (share > best) shown = weights;
    best = std::max(best, share);
  }
  for (std::int64_t k = 0; k < kShown; ++k) {
    map.columns.push_back(
        fmt::format("w{}", example.source[static_cast<std::size_t>(k)] - kFirstWord));
  }
  for (std::int64_t t = 0; t < kShown; ++t) {
    map.rows.push_back(
        fmt::format("w{}", example.target[static_cast<std::size_t>(t)] - kFirstWord));
    for (std::int64_t k = 0; k < kShown; ++k) map.values.push_back(shown.at(t, k));
  }
  return map;
}

Verdict judge(const Figures& f) {
  const bool appears = f["share_last"] >= 3 * f["share_first"];
  const bool clear = f["share_last"] >= 0.5 && f["exact_last"] >= 0.9;
  return verdict_of(appears, clear);
}

Result run(const Options& options) {
  Experiment experiment(options, small_transformer(kWords), Task::translate);
  const std::vector<Example> shown = make_examples(options, reversing(kShown, kShown), 16);
  const std::vector<Example> tests =
      make_examples(options, reversing(3, 8), options.scaled(kTests, 4));
  Result result;
  result.table.columns = {"step", "aligned_share", "exact"};
  Line share{.name = both("weight on the right word", "맞는 단어에 둔 가중치")},
      exact{.name = both("sentences right", "문장 정답")};
  std::vector<std::int64_t> checkpoints;
  checkpoints.reserve(kCheckpoints.size());
  for (const std::int64_t step : kCheckpoints)
    checkpoints.push_back(step == 0 ? 0 : options.scaled(step));
  const auto look = [&](std::int64_t step) {
    if (std::ranges::find(checkpoints, step) == checkpoints.end()) return;
    const Trace trace = experiment.trace(shown, {Tap::attention_weights});
    share.x.push_back(static_cast<double>(step));
    exact.x.push_back(static_cast<double>(step));
    share.y.push_back(aligned_share(trace, shown));
    exact.y.push_back(exact_share(tests, experiment.generate(tests)));
    result.table.add({std::to_string(step), cell(share.y.back()), cell(exact.y.back())});
    const std::int64_t half = options.scaled(150), end = options.scaled(kSteps);
    if (step == 0 || step == half || step == end)
      result.charts.emplace_back(attention_map(trace, shown[0], step));
  };
  look(0);
  experiment.train({.steps = kSteps, .batch = 64, .after_step = look}, reversing(3, 8),
                   {"reversing", 0, 1});
  Figures& f = result.figures;
  f.set("share_first", share.y.front());
  f.set("share_last", share.y.back());
  f.set("exact_first", exact.y.front());
  f.set("exact_last", exact.y.back());
  result.charts.insert(
      result.charts.begin(),
      line_chart(both("Learning to reverse words", "단어 뒤집기 학습"),
                 {.label = both("step", "스텝")},
                 {.label = both("share", "비율"), .low = 0, .high = 1.02}, {share, exact}));
  result.finding = {
      fmt::format("Before training, {:.2f} of the cross-attention is on the word that comes next; "
                  "after {:.0f} steps it is {:.2f}, and {:.0f}% of the sentences are right.",
                  f["share_first"], share.x.back(), f["share_last"], 100 * f["exact_last"]),
      fmt::format("학습 전에는 크로스 어텐션의 {:.2f}가 다음에 쓸 단어에 있고, {:.0f}스텝 뒤에는 "
                  "{:.2f}가 되며 문장의 {:.0f}%가 맞습니다.",
                  f["share_first"], share.x.back(), f["share_last"], 100 * f["exact_last"])};
  result.not_shown = {
      "Why a head ends where it does: other seeds can divide the work between the layers "
      "differently. Weights say where a model looks, not what it computes with what it sees.",
      "헤드가 왜 그렇게 자리 잡는지는 보이지 않습니다. 시드가 다르면 층 사이의 역할이 달라질 수 "
      "있습니다. 가중치는 모델이 어디를 보는지 말할 뿐, 본 것으로 무엇을 계산하는지는 말하지 "
      "않습니다."};
  return result;
}

}  // namespace

Lab learning_lab() {
  return {
      .name = "learning",
      .note = notes::kTraining,
      .question = {"How does attention find the right words while a model learns?",
                   "학습하는 동안 어텐션은 어떻게 맞는 단어를 찾아갈까?"},
      .claim = {"At first the weights are random and the output is nonsense; back-propagation "
                "adjusts them until the decoder attends to the parts of the input that it needs.",
                "학습 초기에는 가중치가 무작위라 출력이 엉뚱하지만, 역전파로 조정되면서 디코더가 "
                "입력의 필요한 부분에 집중하게 된다."},
      .rule = {"It holds if the weight on the right word at least triples, and if in the end it is "
               "at least 0.5 with 90% of the sentences right; partly with one of the two, and it "
               "fails with none.",
               "맞는 단어에 둔 가중치가 세 배 이상이 되고, 끝에서 0.5 이상이며 문장의 90% 이상이 "
               "맞으면 성립, 둘 중 하나만이면 부분 성립, 둘 다 아니면 성립하지 않습니다."},
      .judge = judge,
      .run = run};
}

}  // namespace nunchi::lab
