#include "nunchi/lab/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "nunchi/lab/draws.h"
#include "nunchi/ops/attention.h"
#include "nunchi/ops/linear.h"
#include "nunchi/ops/recurrent.h"
#include "nunchi/ops/tensors.h"

namespace nunchi::lab {
namespace {

constexpr std::int64_t kWidth = 64;

// A fresh context for each measurement: its arena has seen nothing else.
struct Inputs {
  Inputs(const Options& options, std::int64_t tokens)
      : context({.threads = options.context.threads()}) {
    const std::int32_t lengths[] = {static_cast<std::int32_t>(tokens)};
    rows = make_ragged(context, lengths);
    Draws draws(options.seed, 1);
    std::vector<float> all(static_cast<std::size_t>(tokens * kWidth));
    const auto random = [&](const Shape& shape) {
      all.resize(static_cast<std::size_t>(shape.elements()));
      for (float& value : all) value = static_cast<float>(draws.normal() * 0.5);
      return Variable(from_host(context, all, shape));
    };
    q = random({tokens, kWidth});
    k = random({tokens, kWidth});
    v = random({tokens, kWidth});
    std::vector<float> transposed(all.size());
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t d = 0; d < kWidth; ++d) {
        transposed[static_cast<std::size_t>(d * tokens + t)] =
            all[static_cast<std::size_t>(t * kWidth + d)];
      }
    }
    v_transposed = Variable(from_host(context, transposed, {kWidth, tokens}));
    cell.input = {.weight = random({3 * kWidth, kWidth}), .bias = random({3 * kWidth})};
    cell.hidden[0] = {.weight = random({3 * kWidth, kWidth}), .bias = random({3 * kWidth})};
  }

  CpuContext context;
  Ragged rows;
  Variable q, k, v, v_transposed;
  RecurrentLayer cell;
};

// softmax(Q Kᵀ / √D) as a matrix in memory, then times V.
Variable with_matrix(const Inputs& in) {
  const std::int64_t n = in.rows.rows;
  const AttentionWeightsResult result =
      attention_weights(in.q.value(), in.k.value(), in.rows, in.rows, {.heads = 1});
  return linear(Variable(result.weights.flat_slice(0, {n, n})), {.weight = in.v_transposed});
}
Variable tiled(const Inputs& in) {
  return attention(in.q, in.k, in.v, in.rows, in.rows, {.heads = 1});
}
Variable recurrence(const Inputs& in) { return recurrent(in.q, in.cell, in.rows).out; }

struct Cost {
  double milliseconds = 0, mebibytes = 0;
  std::vector<double> out;
};

Cost measure(const Options& options, std::int64_t tokens, Variable (*compute)(const Inputs&)) {
  using Clock = std::chrono::steady_clock;
  Inputs in(options, tokens);
  const std::size_t before = in.context.arena().in_use();
  Cost cost;
  std::vector<double> times;
  for (int repeat = 0; repeat < 4; ++repeat) {
    const Clock::time_point start = Clock::now();
    const Variable out = compute(in);
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    if (repeat == 0) cost.out = to_host_f64(out.value());
  }
  // The first run plans products and takes memory from the system.
  cost.milliseconds = *std::min_element(times.begin() + 1, times.end());
  cost.mebibytes = static_cast<double>(in.context.arena().peak() - before) / (1 << 20);
  return cost;
}

// a in cost ~ lengthᵃ, from the two longest lengths.
double exponent(const Line& line) {
  const std::size_t n = line.y.size();
  return n < 2 ? 0 : std::log2(line.y[n - 1] / line.y[n - 2]);
}

Verdict judge(const Figures& f) {
  const bool memory = f["matrix_memory_exponent"] >= 1.8 && f["tiled_memory_exponent"] <= 1.2;
  const bool time = f["tiled_ms"] <= f["matrix_ms"];
  return verdict_of(memory, time);
}

Result run(const Options& options) {
  struct Way {
    const char* name;
    Variable (*compute)(const Inputs&);
    Line time, memory;
  };
  std::vector<Way> ways = {{"matrix", with_matrix, {}, {}},
                           {"tiled", tiled, {}, {}},
                           {"recurrence", recurrence, {}, {}}};
  const std::string names[] = {both("N × N matrix", "N × N 행렬"),
                               both("tiled (Flash Attention)", "타일 (Flash Attention)"),
                               both("recurrence (GRU)", "순환 (GRU)")};
  Result result;
  result.table.columns = {"tokens", "method", "milliseconds", "mebibytes"};
  const std::int64_t longest = options.scaled(8192, 512);
  double difference = 0;
  for (std::int64_t tokens = 256; tokens <= longest; tokens *= 2) {
    options.report({"lengths", static_cast<double>(tokens) / static_cast<double>(2 * longest)});
    std::vector<double> exact;
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const Cost cost = measure(options, tokens, ways[i].compute);
      ways[i].time.name = ways[i].memory.name = names[i];
      ways[i].time.x.push_back(static_cast<double>(tokens));
      ways[i].memory.x.push_back(static_cast<double>(tokens));
      ways[i].time.y.push_back(cost.milliseconds);
      ways[i].memory.y.push_back(cost.mebibytes);
      result.table.add(
          {std::to_string(tokens), ways[i].name, cell(cost.milliseconds), cell(cost.mebibytes)});
      if (i == 0) exact = cost.out;
      if (i == 1) {
        for (std::size_t e = 0; e < exact.size(); ++e) {
          difference = std::max(difference, std::abs(exact[e] - cost.out[e]));
        }
      }
    }
  }
  Figures& f = result.figures;
  f.set("tokens", ways[0].time.x.back());
  for (const Way& way : ways) {
    f.set(fmt::format("{}_ms", way.name), way.time.y.back());
    f.set(fmt::format("{}_mib", way.name), way.memory.y.back());
    f.set(fmt::format("{}_memory_exponent", way.name), exponent(way.memory));
    f.set(fmt::format("{}_time_exponent", way.name), exponent(way.time));
  }
  f.set("largest_difference", difference);
  const Axis length{.label = both("length (tokens)", "길이(토큰)"), .logarithmic = true};
  result.charts = {line_chart(both("Memory", "메모리"), length,
                              {.label = both("memory (MiB)", "메모리(MiB)"), .logarithmic = true},
                              {ways[0].memory, ways[1].memory, ways[2].memory}),
                   line_chart(both("Time", "시간"), length,
                              {.label = both("time (ms)", "시간(ms)"), .logarithmic = true},
                              {ways[0].time, ways[1].time, ways[2].time})};
  result.finding = {
      fmt::format("At {:.0f} tokens, one head of 64: the N × N matrix takes {:.0f} MiB and {:.0f} "
                  "ms, tiled attention {:.1f} MiB and {:.0f} ms, with the same result (largest "
                  "difference {:.0e}); a GRU of the same width takes {:.1f} MiB and {:.0f} ms. "
                  "When the length doubles, memory grows by 2^{:.2f}, 2^{:.2f} and 2^{:.2f}, time "
                  "by 2^{:.2f}, 2^{:.2f} and 2^{:.2f}.",
                  f["tokens"], f["matrix_mib"], f["matrix_ms"], f["tiled_mib"], f["tiled_ms"],
                  f["largest_difference"], f["recurrence_mib"], f["recurrence_ms"],
                  f["matrix_memory_exponent"], f["tiled_memory_exponent"],
                  f["recurrence_memory_exponent"], f["matrix_time_exponent"],
                  f["tiled_time_exponent"], f["recurrence_time_exponent"]),
      fmt::format("{:.0f}토큰, 64차원 헤드 하나: N × N 행렬은 {:.0f} MiB와 {:.0f} ms, 타일 "
                  "어텐션은 {:.1f} MiB와 {:.0f} ms가 들고 결과는 같습니다(최대 차이 {:.0e}). 같은 "
                  "폭의 GRU는 {:.1f} MiB와 {:.0f} ms입니다. 길이가 두 배가 되면 메모리는 각각 "
                  "2^{:.2f}, 2^{:.2f}, 2^{:.2f}배, 시간은 2^{:.2f}, 2^{:.2f}, 2^{:.2f}배가 됩니다.",
                  f["tokens"], f["matrix_mib"], f["matrix_ms"], f["tiled_mib"], f["tiled_ms"],
                  f["largest_difference"], f["recurrence_mib"], f["recurrence_ms"],
                  f["matrix_memory_exponent"], f["tiled_memory_exponent"],
                  f["recurrence_memory_exponent"], f["matrix_time_exponent"],
                  f["tiled_time_exponent"], f["recurrence_time_exponent"])};
  result.not_shown = {
      "The backward pass and a GPU. Tiled attention computes as many products as before: its time "
      "still grows with N².",
      "역전파와 GPU에서의 결과는 보이지 않습니다. 타일 어텐션도 곱셈의 수는 같아서 시간은 여전히 "
      "N²에 비례합니다."};
  return result;
}

}  // namespace

Lab memory_lab() {
  return {.name = "memory",
          .note = notes::kAttention,
          .question = {"What does the N × N matrix cost, and what does Flash Attention save?",
                       "N × N 행렬의 비용은 얼마이고 Flash Attention은 무엇을 아낄까?"},
          .claim = {"The matrix of attention scores grows with O(N²); Flash Attention uses memory "
                    "more efficiently and is faster.",
                    "어텐션 스코어 매트릭스의 크기는 O(N²)으로 증가한다. Flash Attention을 쓰면 "
                    "메모리 효율성이 늘고 속도가 개선된다."},
          .rule = {"It holds if, from 4,096 to 8,192 tokens, the matrix's memory grows by at least "
                   "2^1.8 and that of tiled attention by at most 2^1.2, and if tiled attention is "
                   "not slower; partly with one of the two, and it fails with none.",
                   "4,096토큰에서 8,192토큰으로 늘 때 행렬의 메모리가 2^1.8배 이상, 타일 어텐션의 "
                   "메모리가 2^1.2배 이하로 늘고 타일 어텐션이 더 느리지 않으면 성립, 둘 중 "
                   "하나만이면 부분 성립, 둘 다 아니면 성립하지 않습니다."},
          .judge = judge,
          .run = run};
}

}  // namespace nunchi::lab
