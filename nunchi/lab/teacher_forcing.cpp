#include "nunchi/lab/teacher_forcing.h"

#include <fmt/format.h>

#include <array>
#include <chrono>

#include "nunchi/lab/tasks.h"

namespace nunchi::lab {
namespace {

constexpr std::int64_t kWords = 20, kSteps = 2500, kEvery = 25, kTests = 64;
constexpr double kGoal = 0.5;  // loss of a token; random guessing has ln 21 = 3.0
constexpr std::array<float, 3> kRates = {0, 0.5f, 1};

struct Measured {
  double steps = 0;  // until the goal; kSteps if it was not reached
  double reached = 0, seconds = 0, exact = 0;
  Line losses;
};

Measured measure(const Options& options, float rate, const ProgressSpan& progress) {
  using Clock = std::chrono::steady_clock;
  RnnConfig config = small_rnn(kWords, RnnAttention::none, 96);
  config.free_running = rate;
  Experiment experiment(options, config, Task::translate);
  const ExampleMaker task = copying(2, 5, kWords);
  const std::vector<Example> tests = make_examples(options, task, kTests);
  Measured measured;
  measured.losses.name = rate == 0
                             ? both("teacher forcing", "티처 포싱")
                             : fmt::format("free running {:.1f} · 자유 실행 {:.1f}", rate, rate);
  const Clock::time_point start = Clock::now();
  std::int64_t last = 0;
  bool reached = false;
  const auto check = [&](std::int64_t step) {
    last = step;
    if (step % kEvery != 0 && step != options.scaled(kSteps)) return;
    // With the true tokens before it, the same measure for all three.
    const double loss = experiment.loss(tests);
    measured.losses.x.push_back(static_cast<double>(step));
    measured.losses.y.push_back(loss);
    reached = loss <= kGoal;
  };
  experiment.train({.steps = kSteps,
                    .batch = 32,
                    .peak = 3e-3,
                    .after_step = check,
                    .enough = [&] { return reached; }},
                   task, progress);
  measured.steps = static_cast<double>(last);
  measured.reached = reached ? 1 : 0;
  measured.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  measured.exact = exact_share(tests, experiment.generate(tests));
  return measured;
}

Verdict judge(const Figures& f) {
  const bool faster =
      f["reached_0"] == 1 && f["steps_0"] < f["steps_50"] && f["steps_0"] < f["steps_100"];
  const bool much = f["reached_0"] == 1 && f["steps_100"] >= 1.5 * f["steps_0"];
  return verdict_of(faster, much);
}

Result run(const Options& options) {
  Result result;
  result.table.columns = {"free_running", "step", "loss"};
  std::vector<Line> lines;
  Bars steps;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kRates.size(); ++i) {
    const double begin = static_cast<double>(i) / kRates.size();
    const Measured measured =
        measure(options, kRates[i], {"free running", begin, begin + 1.0 / kRates.size()});
    const int percent = static_cast<int>(100 * kRates[i]);
    result.figures.set(fmt::format("steps_{}", percent), measured.steps);
    result.figures.set(fmt::format("reached_{}", percent), measured.reached);
    result.figures.set(fmt::format("seconds_{}", percent), measured.seconds);
    result.figures.set(fmt::format("exact_{}", percent), measured.exact);
    for (std::size_t k = 0; k < measured.losses.x.size(); ++k) {
      result.table.add(
          {fmt::format("{}", kRates[i]), cell(measured.losses.x[k]), cell(measured.losses.y[k])});
    }
    lines.push_back(measured.losses);
    steps.values.push_back(measured.steps);
    names.push_back(fmt::format("{:.1f}", kRates[i]));
  }
  result.charts = {
      line_chart(both("Loss with the true tokens before", "정답을 입력했을 때의 손실"),
                 {.label = both("step", "스텝")},
                 {.label = both("loss of a token (nats)", "토큰당 손실(nat)"), .low = 0}, lines),
      bar_chart(both("Steps until the loss is 0.5", "손실 0.5까지의 스텝"), names,
                {.label = both("steps", "스텝"), .low = 0}, {steps})};
  const Figures& f = result.figures;
  const auto steps_text = [&](int percent) {
    return f[fmt::format("reached_{}", percent)] == 1
               ? fmt::format("{:.0f}", f[fmt::format("steps_{}", percent)])
               : fmt::format("> {:.0f}", f[fmt::format("steps_{}", percent)]);
  };
  result.finding = {
      fmt::format(
          "An RNN without attention that learns to repeat words reaches a loss of 0.5 after "
          "{} steps with teacher forcing, {} when half of its inputs are its own "
          "predictions, and {} when all are ({:.0f}, {:.0f} and {:.0f} seconds).",
          steps_text(0), steps_text(50), steps_text(100), f["seconds_0"], f["seconds_50"],
          f["seconds_100"]),
      fmt::format(
          "어텐션 없이 단어를 따라 쓰는 RNN은 티처 포싱으로 {}스텝, 입력의 절반이 자기 예측이면 "
          "{}스텝, "
          "모두 자기 예측이면 {}스텝 만에 손실 0.5에 도달합니다(각각 {:.0f}, {:.0f}, {:.0f}초).",
          steps_text(0), steps_text(50), steps_text(100), f["seconds_0"], f["seconds_50"],
          f["seconds_100"])};
  result.not_shown = {
      "The price of teacher forcing: a model that has only seen true tokens may recover worse from "
      "its own errors on long texts. The gradient does not pass through the chosen tokens in free "
      "running.",
      "티처 포싱의 대가는 보이지 않습니다. 정답만 보고 학습한 모델은 긴 텍스트에서 자기 실수를 "
      "만회하는 데 약할 수 있습니다. 자유 실행에서 그래디언트는 고른 토큰을 통과하지 않습니다."};
  return result;
}

}  // namespace

Lab teacher_forcing_lab() {
  return {
      .name = "teacher-forcing",
      .note = notes::kSeq2Seq,
      .question = {"Does teacher forcing make learning faster?", "티처 포싱은 학습을 빠르게 할까?"},
      .claim = {"Reading the true token instead of the model's own prediction makes training "
                "faster and its convergence stable, because early errors do not accumulate.",
                "모델의 예측 대신 정답 토큰을 입력하면 초기의 오차가 누적되지 않아 학습이 빨라지고 "
                "안정적으로 수렴한다."},
      .rule = {"It holds if teacher forcing reaches the loss in fewer steps than both others, and "
               "if full free running needs at least 1.5 times as many; partly with one of the two, "
               "and it fails with none.",
               "티처 포싱이 다른 둘보다 적은 스텝에 도달하고, 완전한 자유 실행이 1.5배 이상의 "
               "스텝을 쓰면 성립, 둘 중 하나만이면 부분 성립, 둘 다 아니면 성립하지 않습니다."},
      .judge = judge,
      .run = run};
}

}  // namespace nunchi::lab
