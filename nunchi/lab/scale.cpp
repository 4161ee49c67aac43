#include "nunchi/lab/scale.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "nunchi/lab/tasks.h"

namespace nunchi::lab {
namespace {

constexpr std::int64_t kWords = 24, kLength = 24;
constexpr std::array<std::int64_t, 5> kWidths = {8, 16, 32, 64, 128};
constexpr std::array kChances = {0.5, 0.25, 0.15, 0.1};  // of the four words that may follow

// Every pair of words is followed by one of four words, drawn once for the language.
std::int32_t successor(std::int32_t first, std::int32_t second, std::uint32_t choice) {
  constexpr philox::Key kLanguage = {0x6e756e63u, 0x6869u};
  const philox::Words bits = philox::bits(
      {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(second), choice, 0},
      kLanguage);
  return static_cast<std::int32_t>(bits[0] % kWords);
}

Example text(Draws& draws) {
  std::int32_t first = draws.below(kWords), second = draws.below(kWords);
  Tokens tokens = {kUsualSpecialTokens.begin, kFirstWord + first, kFirstWord + second};
  while (std::ssize(tokens) <= kLength) {
    double left = draws.uniform();
    std::uint32_t choice = 0;
    while (choice + 1 < kChances.size() && left >= kChances[choice]) left -= kChances[choice++];
    const std::int32_t next = successor(first, second, choice);
    tokens.push_back(kFirstWord + next);
    first = second;
    second = next;
  }
  return {.target = tokens};
}

Verdict judge(const Figures& f) {
  bool falls = true;
  for (std::size_t i = 1; i < kWidths.size(); ++i) {
    falls = falls && f[fmt::format("loss_{}", kWidths[i])] <=
                         f[fmt::format("loss_{}", kWidths[i - 1])] + 0.01;
  }
  const bool much = f["loss_128"] <= f["loss_8"] - 0.3;
  return verdict_of(falls, much);
}

Result run(const Options& options) {
  Result result;
  result.table.columns = {"width", "parameters", "loss"};
  Line line;
  std::vector<Line> training;
  for (std::size_t i = 0; i < kWidths.size(); ++i) {
    const std::int64_t width = kWidths[i];
    Experiment experiment(options, small_text_model<GptConfig>(kWords, width, 2), Task::text);
    // Larger models take more of the time.
    constexpr std::array kBegin = {0.0, 0.1, 0.2, 0.35, 0.55, 1.0};
    const std::vector<double> losses =
        experiment.train({.steps = 800, .batch = 32, .peak = width >= 64 ? 2e-3 : 4e-3}, text,
                         {"width", kBegin[i], kBegin[i + 1]});
    const double loss = experiment.loss(make_examples(options, text, options.scaled(200, 8)));
    const auto parameters = static_cast<double>(experiment.model().parameters().count());
    line.x.push_back(parameters);
    line.y.push_back(loss);
    Line steps{.name = fmt::format("width {0} · 폭 {0}", width)};
    for (std::size_t s = 0; s < losses.size(); s += 20) {
      steps.x.push_back(static_cast<double>(s + 1));
      steps.y.push_back(losses[s]);
    }
    training.push_back(steps);
    result.figures.set(fmt::format("parameters_{}", width), parameters);
    result.figures.set(fmt::format("loss_{}", width), loss);
    result.table.add({std::to_string(width), cell(parameters), cell(loss)});
  }
  result.charts = {
      line_chart(both("Loss by size, 800 steps each", "크기별 손실 (각 800스텝)"),
                 {.label = both("parameters", "파라미터 수"), .logarithmic = true},
                 {.label = both("loss of a token (nats)", "토큰당 손실(nat)")}, {line}),
      line_chart(both("Training", "학습"), {.label = both("step", "스텝")},
                 {.label = both("loss of a token (nats)", "토큰당 손실(nat)")}, training)};
  const Figures& f = result.figures;
  result.finding = {
      fmt::format("From {:.0f} to {:.0f} parameters, the loss of a token falls from {:.2f} to "
                  "{:.2f} nats in five sizes: {:.2f}, {:.2f}, {:.2f}, {:.2f}, {:.2f}.",
                  f["parameters_8"], f["parameters_128"], f["loss_8"], f["loss_128"], f["loss_8"],
                  f["loss_16"], f["loss_32"], f["loss_64"], f["loss_128"]),
      fmt::format("파라미터가 {:.0f}개에서 {:.0f}개로 늘면 토큰당 손실은 {:.2f}에서 {:.2f} nat으로 "
                  "떨어집니다. 다섯 크기의 손실: {:.2f}, {:.2f}, {:.2f}, {:.2f}, {:.2f}.",
                  f["parameters_8"], f["parameters_128"], f["loss_8"], f["loss_128"], f["loss_8"],
                  f["loss_16"], f["loss_32"], f["loss_64"], f["loss_128"])};
  result.not_shown = {
      "Large models and real text, and whether the loss follows a power law there: five sizes of a "
      "language of 576 rules cannot show it. More data and more computing were not varied.",
      "큰 모델과 실제 텍스트, 그리고 손실이 멱법칙을 따르는지는 보이지 않습니다. 규칙 576개의 "
      "언어와 다섯 가지 크기로는 알 수 없습니다. 데이터와 계산량은 바꾸지 않았습니다."};
  return result;
}

}  // namespace

Lab scale_lab() {
  return {
      .name = "scale",
      .note = notes::kSeq2Seq,
      .question = {"Do larger models get better?", "모델이 커지면 더 좋아질까?"},
      .claim = {"Transformers scale: with more data and parameters their quality keeps improving.",
                "트랜스포머는 규모가 커질수록 성능이 지속적으로 향상되는 스케일링 특성이 있다."},
      .rule = {"It holds if the loss falls with every larger size (a hundredth of slack) and by at "
               "least 0.3 nats in all; partly with one of the two, and it fails with none.",
               "크기가 커질 때마다 손실이 떨어지고(0.01의 여유) 모두 합쳐 0.3 nat 이상 떨어지면 "
               "성립, 둘 중 하나만이면 부분 성립, 둘 다 아니면 성립하지 않습니다."},
      .judge = judge,
      .run = run};
}

}  // namespace nunchi::lab
