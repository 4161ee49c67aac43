#include "nunchi/lab/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nunchi/lab/draws.h"
#include "nunchi/ops/attention.h"
#include "nunchi/ops/tensors.h"

namespace nunchi::lab {
namespace {

constexpr std::int32_t kKeys = 10;

struct Sharpness {
  double largest = 0;   // mean of the largest weight
  double gradient = 0;  // mean of p (1 - p), the derivative of that weight by its own score
};

// One random query over ten random keys, many times; the weights are those of the attention kernel.
Sharpness measure(const Options& options, std::int64_t width, double scale) {
  // Equally many random numbers for each width.
  const std::int64_t trials = options.scaled(512000 / width, 10);
  const std::vector<std::int32_t> ones(static_cast<std::size_t>(trials), 1);
  const std::vector<std::int32_t> tens(static_cast<std::size_t>(trials), kKeys);
  const Ragged queries = make_ragged(options.context, ones);
  const Ragged keys = make_ragged(options.context, tens);
  Draws draws(options.seed, static_cast<std::uint32_t>(width));
  const auto normal_rows = [&](const Ragged& rows) {
    std::vector<float> values(static_cast<std::size_t>(rows.capacity * width));
    for (float& value : values) value = static_cast<float>(draws.normal());
    return from_host(options.context, values, {rows.capacity, width});
  };
  const Tensor q = normal_rows(queries), k = normal_rows(keys);
  const AttentionWeightsResult result =
      attention_weights(q, k, queries, keys, {.heads = 1, .scale = scale});
  const std::vector<double> weights = to_host_f64(result.weights);
  Sharpness sharpness;
  for (const std::int64_t begin : result.begin) {
    const double p = *std::max_element(weights.begin() + begin, weights.begin() + begin + kKeys);
    sharpness.largest += p / static_cast<double>(trials);
    sharpness.gradient += p * (1 - p) / static_cast<double>(trials);
  }
  return sharpness;
}

Verdict judge(const Figures& f) {
  const bool sharp = f["largest_unscaled_64"] >= 0.8 && f["largest_scaled_64"] <= 0.5;
  const bool vanishes = f["gradient_scaled_512"] >= 2 * f["gradient_unscaled_512"];
  return verdict_of(sharp, vanishes);
}

Result run(const Options& options) {
  Result result;
  result.table.columns = {"d_k", "largest_unscaled", "largest_scaled", "gradient_unscaled",
                          "gradient_scaled"};
  Line largest[2] = {{.name = both("unscaled", "나누지 않음")},
                     {.name = both("scaled by √d_k", "√d_k로 나눔")}};
  Line gradient[2] = {largest[0], largest[1]};
  for (std::int64_t width = 4; width <= 512; width *= 2) {
    options.report({"random queries and keys", std::log2(static_cast<double>(width)) / 10});
    const Sharpness raw = measure(options, width, 1), scaled = measure(options, width, 0);
    for (int i = 0; i < 2; ++i) {
      const Sharpness& one = i == 0 ? raw : scaled;
      largest[i].x.push_back(static_cast<double>(width));
      largest[i].y.push_back(one.largest);
      gradient[i].x.push_back(static_cast<double>(width));
      gradient[i].y.push_back(one.gradient);
    }
    result.table.add({std::to_string(width), cell(raw.largest), cell(scaled.largest),
                      cell(raw.gradient), cell(scaled.gradient)});
    const std::string d = std::to_string(width);
    result.figures.set("largest_unscaled_" + d, raw.largest);
    result.figures.set("largest_scaled_" + d, scaled.largest);
    result.figures.set("gradient_unscaled_" + d, raw.gradient);
    result.figures.set("gradient_scaled_" + d, scaled.gradient);
  }
  const Axis width{.label = both("width of keys d_k", "키의 차원 d_k"), .logarithmic = true};
  result.charts = {
      line_chart(both("Largest of ten weights", "열 개 가중치 중 가장 큰 것"), width,
                 {.label = both("largest weight", "최대 가중치"), .low = 0, .high = 1},
                 {largest[0], largest[1]}),
      line_chart(both("Gradient of the softmax", "소프트맥스의 그래디언트"), width,
                 {.label = "p (1 − p)", .low = 0, .high = 0.25}, {gradient[0], gradient[1]})};
  const Figures& f = result.figures;
  result.finding = {
      fmt::format("With d_k = 64, the largest of ten weights is {:.2f} without the division and "
                  "{:.2f} with it; its gradient p(1 − p) is {:.3f} and {:.3f}. At d_k = 512 the "
                  "gradients are {:.3f} and {:.3f}.",
                  f["largest_unscaled_64"], f["largest_scaled_64"], f["gradient_unscaled_64"],
                  f["gradient_scaled_64"], f["gradient_unscaled_512"], f["gradient_scaled_512"]),
      fmt::format("d_k = 64일 때 열 개 가중치 중 가장 큰 것은 √d_k로 나누지 않으면 {:.2f}, 나누면 "
                  "{:.2f}이고, 그 그래디언트 p(1 − p)는 각각 {:.3f}과 {:.3f}입니다. d_k = "
                  "512에서는 {:.3f}과 {:.3f}입니다.",
                  f["largest_unscaled_64"], f["largest_scaled_64"], f["gradient_unscaled_64"],
                  f["gradient_scaled_64"], f["gradient_unscaled_512"], f["gradient_scaled_512"])};
  result.not_shown = {
      "Queries and keys are random here, with variance 1. A trained model can learn smaller ones, "
      "so this says how training starts, not that it must fail without the scale.",
      "여기서 쿼리와 키는 분산이 1인 난수입니다. 학습된 모델은 더 작은 값을 배울 수 있으므로, 이 "
      "실험은 학습의 출발점을 보여 줄 뿐 나누지 않으면 반드시 실패한다는 뜻은 아닙니다."};
  return result;
}

}  // namespace

Lab scaling_lab() {
  return {.name = "scaling",
          .note = notes::kOverview,
          .question = {"Why are the scores divided by √d_k?", "왜 점수를 √d_k로 나눌까?"},
          .claim = {"If the dot products are too large, the softmax becomes sharp and its gradient "
                    "vanishes; dividing by √d_k prevents this.",
                    "내적 값이 너무 크면 소프트맥스가 뾰족해지고 그래디언트가 사라진다. √d_k로 "
                    "나누면 이를 막는다."},
          .rule = {"It holds if, at d_k = 64, the largest weight is at least 0.8 unscaled and at "
                   "most 0.5 scaled, and if, at d_k = 512, scaling at least doubles the gradient; "
                   "partly with one of the two, and it fails with none.",
                   "d_k = 64에서 최대 가중치가 나누지 않으면 0.8 이상, 나누면 0.5 이하이고 d_k = "
                   "512에서 나눈 쪽의 그래디언트가 두 배 이상이면 성립, 둘 중 하나만이면 부분 "
                   "성립, 둘 다 아니면 성립하지 않습니다."},
          .judge = judge,
          .run = run};
}

}  // namespace nunchi::lab
