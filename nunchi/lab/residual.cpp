#include "nunchi/lab/residual.h"

#include <fmt/format.h>

#include <cmath>

#include "nunchi/lab/tasks.h"
#include "nunchi/ops/tensors.h"

namespace nunchi::lab {
namespace {

constexpr std::int64_t kWords = 24, kLength = 16;
constexpr int kLayers = 12;

// A walk in which most words have a fixed successor; one in eight is random.
Example walk(Draws& draws) {
  Tokens text = {kUsualSpecialTokens.begin};
  std::int32_t word = draws.below(kWords);
  for (std::int64_t i = 0; i < kLength; ++i) {
    text.push_back(kFirstWord + word);
    word = draws.below(8) == 0 ? draws.below(kWords)
                               : (5 * word + 7) % static_cast<std::int32_t>(kWords);
  }
  return {.target = text};
}

struct Kind {
  std::string_view key;
  std::string name;
  bool residual, norm;
};

// The norm of the gradient of each layer's parameters.
std::vector<double> layer_gradients(const nn::Parameters& parameters) {
  std::vector<double> squares(kLayers, 0);
  for (const nn::ParameterEntry& entry : parameters.entries()) {
    constexpr std::string_view kPrefix = "decoder.layers.";
    if (!entry.name.starts_with(kPrefix)) continue;
    const auto layer = static_cast<std::size_t>(std::stoi(entry.name.substr(kPrefix.size())));
    for (const double g :
         to_host_f64(parameters.gradients().flat_slice(entry.offset, entry.shape))) {
      squares.at(layer) += g * g;
    }
  }
  for (double& square : squares) square = std::sqrt(square);
  return squares;
}

Verdict judge(const Figures& f) {
  const bool flows = f["first_to_last_residual_norm"] >= 5 * f["first_to_last_norm_only"];
  const bool learns = f["loss_residual_norm"] + 0.3 <= f["loss_norm_only"] &&
                      f["loss_residual_norm"] + 0.3 <= f["loss_neither"];
  return verdict_of(flows, learns);
}

Result run(const Options& options) {
  const std::vector<Kind> kinds = {
      {"residual_norm", both("residual + norm", "잔차 + 정규화"), true, true},
      {"norm_only", both("norm only", "정규화만"), false, true},
      {"residual_only", both("residual only", "잔차만"), true, false},
      {"neither", both("neither", "둘 다 없음"), false, false}};
  Result result;
  result.table.columns = {"model", "layer", "gradient_norm"};
  std::vector<Line> gradients, losses;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const Kind& kind = kinds[i];
    auto config = small_text_model<GptConfig>(kWords, 48, kLayers);
    config.norm_placement = nn::NormPlacement::post;  // the paper's
    config.residual_connections = kind.residual;
    config.normalize = kind.norm;
    Experiment experiment(options, config, Task::text);
    experiment.compute_gradients(make_examples(options, walk, options.scaled(64, 4)));
    const std::vector<double> norms = layer_gradients(experiment.model().parameters());
    Line line{.name = kind.name};
    for (int layer = 0; layer < kLayers; ++layer) {
      line.x.push_back(layer + 1);
      line.y.push_back(norms[static_cast<std::size_t>(layer)]);
      result.table.add({std::string(kind.key), std::to_string(layer + 1), cell(line.y.back())});
    }
    gradients.push_back(line);
    const double begin = static_cast<double>(i) / static_cast<double>(kinds.size());
    const std::vector<double> steps =
        experiment.train({.steps = 300, .batch = 32, .peak = 1e-3}, walk,
                         {kind.key, begin, begin + 1.0 / static_cast<double>(kinds.size())});
    Line loss{.name = kind.name};
    for (std::size_t s = 0; s < steps.size(); s += 10) {
      loss.x.push_back(static_cast<double>(s + 1));
      loss.y.push_back(steps[s]);
    }
    losses.push_back(loss);
    result.figures.set(fmt::format("first_to_last_{}", kind.key), norms.front() / norms.back());
    result.figures.set(fmt::format("loss_{}", kind.key),
                       experiment.loss(make_examples(options, walk, options.scaled(128, 4))));
  }
  result.charts = {
      line_chart(both("Gradient of each layer before training", "학습 전 층별 그래디언트"),
                 {.label = both("layer", "층")},
                 {.label = both("norm of the gradient", "그래디언트 크기"),
                  .logarithmic = true,
                  .low = 1e-9},
                 gradients),
      line_chart(both("Training, 12 layers", "12층 모델의 학습"), {.label = both("step", "스텝")},
                 {.label = both("loss of a token (nats)", "토큰당 손실(nat)")}, losses)};
  const Figures& f = result.figures;
  result.finding = {
      fmt::format("In 12 layers, the gradient of the first layer is {:.2g} times that of the last "
                  "with residuals and norms, {:.2g} times without residuals, {:.2g} times without "
                  "norms and {:.2g} times with neither. After 300 steps the loss of a token is "
                  "{:.2f}, {:.2f}, {:.2f} and {:.2f}.",
                  f["first_to_last_residual_norm"], f["first_to_last_norm_only"],
                  f["first_to_last_residual_only"], f["first_to_last_neither"],
                  f["loss_residual_norm"], f["loss_norm_only"], f["loss_residual_only"],
                  f["loss_neither"]),
      fmt::format("12층 모델에서 첫 층의 그래디언트는 마지막 층의 몇 배인가: 잔차와 정규화가 "
                  "있으면 {:.2g}, 잔차가 없으면 {:.2g}, 정규화가 없으면 {:.2g}, 둘 다 없으면 "
                  "{:.2g}배입니다. 300스텝 뒤 토큰당 손실은 {:.2f}, {:.2f}, {:.2f}, {:.2f}입니다.",
                  f["first_to_last_residual_norm"], f["first_to_last_norm_only"],
                  f["first_to_last_residual_only"], f["first_to_last_neither"],
                  f["loss_residual_norm"], f["loss_norm_only"], f["loss_residual_only"],
                  f["loss_neither"])};
  result.not_shown = {
      "Other initial weights or learning rates: with much care, networks without residuals can be "
      "trained too.",
      "다른 초기값이나 학습률은 보이지 않습니다. 공을 많이 들이면 잔차 연결이 없는 망도 학습할 수 "
      "있습니다."};
  return result;
}

}  // namespace

Lab residual_lab() {
  return {
      .name = "residual",
      .note = notes::kSeq2Seq,
      .question = {"Do deep stacks need residual connections and norms?",
                   "깊은 층에는 잔차 연결과 정규화가 꼭 필요할까?"},
      .claim = {"Residual connections keep the gradient flowing in deep networks; together with "
                "layer normalisation they make deep stacks learn.",
                "잔차 연결은 깊은 망에서 그래디언트의 흐름을 안정시키며, 레이어 정규화와 함께 깊은 "
                "망의 학습을 가능하게 한다."},
      .rule = {"It holds if the first layer's gradient, relative to the last, is at least 10 times "
               "larger with residuals, and if after 300 steps the loss with both is at least 0.3 "
               "below those without residuals; partly with one of the two, and it fails with none.",
               "마지막 층에 견준 첫 층의 그래디언트가 잔차가 있을 때 5배 이상 크고, 300스텝 뒤 둘 "
               "다 있는 모델의 손실이 잔차 없는 모델들보다 0.3 이상 낮으면 성립, 둘 중 하나만이면 "
               "부분 성립, 둘 다 아니면 성립하지 않습니다."},
      .judge = judge,
      .run = run};
}

}  // namespace nunchi::lab
