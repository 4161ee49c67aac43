#include "nunchi/lab/positions.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "nunchi/nn/position/position.h"
#include "nunchi/ops/tensors.h"

namespace nunchi::lab {
namespace {

constexpr std::int64_t kWidth = 512, kPositions = 512;

// Tokens after which a dimension's sinusoid repeats.
double period(std::int64_t dimension) {
  return 2 * std::numbers::pi *
         std::pow(10000.0, static_cast<double>(dimension - dimension % 2) / double{kWidth});
}

// The sines of a position, which the even dimensions hold: figures 3 and 4 of the note.
Line over_dimensions(const std::vector<double>& rows, std::int64_t position) {
  Line line{.name = fmt::format("pos = {}", position)};
  for (std::int64_t d = 0; d < kWidth; d += 2) {
    line.x.push_back(static_cast<double>(d));
    line.y.push_back(rows[static_cast<std::size_t>(position * kWidth + d)]);
  }
  return line;
}

// A dimension over the first `count` positions: figure 5 of the note.
Line over_positions(const std::vector<double>& rows, std::int64_t dimension, std::int64_t count) {
  Line line{.name = fmt::format("dim = {}", dimension)};
  for (std::int64_t p = 0; p < count; ++p) {
    line.x.push_back(static_cast<double>(p));
    line.y.push_back(rows[static_cast<std::size_t>(p * kWidth + dimension)]);
  }
  return line;
}

HeatMap heat_map(const std::vector<double>& rows) {
  HeatMap map{
      .title = both("Sinusoidal positions, 512 wide", "사인·코사인 포지셔널 인코딩 (512차원)"),
      .x_label = both("dimension", "차원"),
      .y_label = both("position", "위치"),
      .low = -1,
      .high = 1,
      .value_label = "PE"};
  for (std::int64_t d = 0; d < kWidth; d += 8) map.columns.push_back(std::to_string(d));
  for (std::int64_t p = 0; p < 60; ++p) {
    map.rows.push_back(std::to_string(p));
    for (std::int64_t d = 0; d < kWidth; d += 8) {
      map.values.push_back(rows[static_cast<std::size_t>(p * kWidth + d)]);
    }
  }
  return map;
}

Verdict judge(const Figures& f) {
  const bool near_alike = f["distance_3_4"] <= 0.5 * f["distance_3_500"];
  const bool always_grows = f["monotone_until"] >= double{kPositions - 1};
  return verdict_of(near_alike, always_grows);
}

Result run(const Options& options) {
  options.report({"positions", 0});
  const std::vector<double> rows = sinusoidal_rows(options.context, kPositions + 1, kWidth);
  Result result;
  result.table.columns = {"offset", "distance"};
  Line distances;
  double last = -1;
  std::int64_t monotone_until = 0;
  bool monotone = true;
  for (std::int64_t offset = 0; offset < kPositions; ++offset) {
    const double distance = row_distance(rows, kWidth, 0, offset);
    monotone = monotone && distance > last;
    if (monotone) monotone_until = offset;
    last = distance;
    distances.x.push_back(static_cast<double>(offset));
    distances.y.push_back(distance);
    result.table.add({std::to_string(offset), cell(distance)});
  }
  Figures& f = result.figures;
  f.set("distance_3_4", row_distance(rows, kWidth, 3, 4));
  f.set("distance_3_500", row_distance(rows, kWidth, 3, 500));
  f.set("monotone_until", static_cast<double>(monotone_until));
  for (const std::int64_t dimension : {0, 10, 300, 511}) {
    f.set(fmt::format("period_{}", dimension), period(dimension));
  }
  const Axis dimension{
      .label = both("dimension (even: sines)", "차원(짝수: 사인)"), .low = 0, .high = 511};
  const Axis near{.label = both("position (tokens)", "위치(토큰)"), .low = 0, .high = 60};
  const Axis position{.label = both("position (tokens)", "위치(토큰)"), .low = 0, .high = 511};
  const Axis value{.label = "PE", .low = -1.05, .high = 1.05};
  result.charts = {
      heat_map(rows),
      line_chart(both("Distance from position 0", "위치 0과의 거리"),
                 {.label = both("offset (tokens)", "간격(토큰)"), .low = 0, .high = 511},
                 {.label = both("distance", "거리"), .low = 0}, {distances}),
      line_chart(both("pos = 3 and 4 (figure 3)", "pos = 3, 4 (그림 3)"), dimension, value,
                 {over_dimensions(rows, 3), over_dimensions(rows, 4)}),
      line_chart(both("pos = 3 and 500 (figure 4)", "pos = 3, 500 (그림 4)"), dimension, value,
                 {over_dimensions(rows, 3), over_dimensions(rows, 500)}),
      line_chart(both("Short periods (figure 5)", "짧은 주기 (그림 5)"), near, value,
                 {over_positions(rows, 0, 61), over_positions(rows, 10, 61)}),
      line_chart(both("Long periods (figure 5)", "긴 주기 (그림 5)"), position, value,
                 {over_positions(rows, 300, kPositions), over_positions(rows, 511, kPositions)})};
  result.finding = {
      fmt::format(
          "‖PE(3) − PE(4)‖ is {:.2f} and ‖PE(3) − PE(500)‖ is {:.2f}. The distance from position 0 "
          "grows only up to an offset of {:.0f} tokens; beyond it, it goes up and down. The "
          "periods of dimensions 0, 10, 300 and 511 are {:.1f}, {:.1f}, {:.0f} and {:.0f} tokens.",
          f["distance_3_4"], f["distance_3_500"], f["monotone_until"], f["period_0"],
          f["period_10"], f["period_300"], f["period_511"]),
      fmt::format("‖PE(3) − PE(4)‖는 {:.2f}, ‖PE(3) − PE(500)‖는 {:.2f}입니다. 위치 0과의 거리는 "
                  "간격 {:.0f}토큰까지만 늘어나고 그 뒤로는 오르내립니다. 0, 10, 300, 511차원의 "
                  "주기는 각각 {:.1f}, {:.1f}, {:.0f}, {:.0f}토큰입니다.",
                  f["distance_3_4"], f["distance_3_500"], f["monotone_until"], f["period_0"],
                  f["period_10"], f["period_300"], f["period_511"])};
  result.not_shown = {
      "Whether a model uses the distance: it multiplies these rows by learned matrices, which can "
      "read an offset that the plain distance hides.",
      "모델이 실제로 이 거리를 쓰는지는 보이지 않습니다. 모델은 이 벡터에 학습된 행렬을 곱하므로, "
      "단순한 거리에 드러나지 않는 간격도 읽어 낼 수 있습니다."};
  return result;
}

}  // namespace

std::vector<double> sinusoidal_rows(ContextBase& context, std::int64_t count, std::int64_t width) {
  nn::Parameters parameters;
  const auto position = nn::make_position(parameters, "position",
                                          {.kind = nn::PositionKind::sinusoidal, .width = width});
  parameters.allocate(context, {});
  std::vector<double> rows = to_host_f64(position->embed(context, count).value());
  rows.resize(static_cast<std::size_t>(count * width));
  return rows;
}

double row_distance(const std::vector<double>& rows, std::int64_t width, std::int64_t a,
                    std::int64_t b) {
  double sum = 0;
  for (std::int64_t d = 0; d < width; ++d) {
    const double difference = rows[static_cast<std::size_t>(a * width + d)] -
                              rows[static_cast<std::size_t>(b * width + d)];
    sum += difference * difference;
  }
  return std::sqrt(sum);
}

Lab positions_lab() {
  return {.name = "positions",
          .note = notes::kPositions,
          .question = {"Are near positions alike and far ones different?",
                       "가까운 위치는 비슷하고 먼 위치는 다를까?"},
          .claim = {"Tokens near to one another differ little in their sin/cos positions, tokens "
                    "far apart differ much, so the relative distance can be told.",
                    "sin/cos PE는 가까운 토큰끼리는 차이가 적고 먼 토큰끼리는 차이가 커서 상대적인 "
                    "거리도 판별할 수 있다."},
          .rule = {"It holds if positions 3 and 4 are at most half as far apart as 3 and 500, and "
                   "if the distance grows with every further token up to 511; partly with one of "
                   "the two, and it fails with none.",
                   "위치 3과 4의 거리가 3과 500의 절반 이하이고, 511토큰까지 간격이 늘 때마다 "
                   "거리도 늘면 성립, 둘 중 하나만이면 부분 성립, 둘 다 아니면 성립하지 않습니다."},
          .judge = judge,
          .run = run};
}

}  // namespace nunchi::lab
