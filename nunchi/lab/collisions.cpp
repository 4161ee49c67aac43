#include "nunchi/lab/collisions.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "nunchi/lab/positions.h"

namespace nunchi::lab {
namespace {

constexpr std::int64_t kPositions = 2048, kFar = 10;

Verdict judge(const Figures& f) {
  if (f["nearest_far_1024"] < f["neighbours_1024"]) return Verdict::holds;
  return f["nearest_far_1024"] < 2 * f["neighbours_1024"] ? Verdict::partly : Verdict::fails;
}

Result run(const Options& options) {
  Result result;
  result.table.columns = {"width", "nearest_far_pair", "neighbours", "offset_of_nearest"};
  Line far{.name = both("nearest pair, ≥ 10 apart", "10 이상 떨어진 가장 가까운 쌍")};
  Line near{.name = both("neighbours", "이웃한 두 위치")};
  for (std::int64_t width = 8; width <= 1024; width *= 2) {
    options.report({"widths", std::log2(static_cast<double>(width)) / 10});
    const std::vector<double> rows = sinusoidal_rows(options.context, kPositions + 1, width);
    // sin² + cos² = 1 in every pair of dimensions, so a distance depends on the offset alone.
    double nearest = std::numeric_limits<double>::infinity();
    std::int64_t offset_of_nearest = 0;
    for (std::int64_t offset = kFar; offset <= kPositions; ++offset) {
      const double distance = row_distance(rows, width, 0, offset);
      if (distance >= nearest) continue;
      nearest = distance;
      offset_of_nearest = offset;
    }
    const double neighbours = row_distance(rows, width, 0, 1);
    for (Line* line : {&far, &near}) line->x.push_back(static_cast<double>(width));
    far.y.push_back(nearest);
    near.y.push_back(neighbours);
    result.table.add({std::to_string(width), cell(nearest), cell(neighbours),
                      std::to_string(offset_of_nearest)});
    result.figures.set(fmt::format("nearest_far_{}", width), nearest);
    result.figures.set(fmt::format("neighbours_{}", width), neighbours);
  }
  result.charts = {line_chart(both("Distances of positions up to 2,048", "위치 2,048까지의 거리"),
                              {.label = both("width d_model", "차원 d_model"), .logarithmic = true},
                              {.label = both("distance", "거리"), .logarithmic = true},
                              {far, near})};
  const Figures& f = result.figures;
  result.finding = {
      fmt::format("At width 8 the nearest pair at least 10 tokens apart is {:.2f} apart, less than "
                  "neighbours ({:.2f}): it collides. At width 512 it is {:.1f} against {:.1f}, at "
                  "1,024 {:.1f} against {:.1f}. Small widths collide, large ones do not.",
                  f["nearest_far_8"], f["neighbours_8"], f["nearest_far_512"], f["neighbours_512"],
                  f["nearest_far_1024"], f["neighbours_1024"]),
      fmt::format(
          "8차원에서는 10토큰 이상 떨어진 가장 가까운 쌍의 거리({:.2f})가 이웃한 두 위치의 "
          "거리({:.2f})보다도 작아 충돌합니다. 512차원에서는 {:.1f} 대 {:.1f}, 1,024차원에서는 "
          "{:.1f} 대 {:.1f}입니다. 충돌하는 것은 큰 차원이 아니라 작은 차원입니다.",
          f["nearest_far_8"], f["neighbours_8"], f["nearest_far_512"], f["neighbours_512"],
          f["nearest_far_1024"], f["neighbours_1024"])};
  result.not_shown = {
      "Texts longer than 2,048 tokens, and whether a model could still separate two vectors that "
      "are close to one another.",
      "2,048토큰보다 긴 텍스트, 그리고 서로 가까운 두 벡터를 모델이 구별할 수 있는지는 보이지 "
      "않습니다."};
  return result;
}

}  // namespace

Lab collisions_lab() {
  return {
      .name = "collisions",
      .note = notes::kPositions,
      .question = {"Do two positions get nearly the same vector when the width is large?",
                   "차원이 크면 두 위치의 벡터가 거의 같아질까?"},
      .claim = {"If the width is very large, some periods are shorter than it, so equal or very "
                "similar position vectors can occur.",
                "차원이 매우 큰 경우 차원의 크기보다 주기가 더 작은 경우가 생기므로 같거나 매우 "
                "유사한 PE 벡터가 생길 수 있다."},
      .rule = {"It holds if, at width 1,024, two positions at least 10 apart are nearer than "
               "neighbours; partly if they come within twice that distance; otherwise it fails.",
               "1,024차원에서 10토큰 이상 떨어진 두 위치가 이웃한 두 위치보다 가까우면 성립, 그 두 "
               "배 거리 안이면 부분 성립, 아니면 성립하지 않습니다."},
      .judge = judge,
      .run = run};
}

}  // namespace nunchi::lab
