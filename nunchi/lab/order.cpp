#include "nunchi/lab/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "nunchi/lab/tasks.h"

namespace nunchi::lab {
namespace {

constexpr std::int64_t kWords = 20, kLength = 6, kTests = 200;

// Six different words, which the target repeats in their order.
Example different_words(Draws& draws) {
  Tokens words(kWords);
  std::iota(words.begin(), words.end(), kFirstWord);
  draws.shuffle(std::span(words));
  words.resize(kLength);
  return {.source = words, .target = words};
}

struct Measured {
  double exact = 0, tokens = 0;
  double difference = 0;  // of a word's vector after permuting the sentence, largest element
  std::vector<double> losses;
};

// How much the encoder's vector of a word changes when the sentence is permuted.
double permuted_difference(const Experiment& experiment, std::span<const Example> tests) {
  double largest = 0;
  for (const Example& test : tests) {
    Example reversed = test;
    std::ranges::reverse(reversed.source);
    const std::vector<Example> two = {test, reversed};
    const Trace trace = experiment.trace(two, {Tap::stack_output});
    const TapRecord& rows = *trace.find(Tap::stack_output, "encoder", -1);
    const auto width = static_cast<std::size_t>(rows.shape[1]);
    for (std::size_t i = 0; i < kLength; ++i) {
      const std::size_t here = i * width, there = (kLength + 1 + kLength - 1 - i) * width;
      for (std::size_t d = 0; d < width; ++d) {
        largest =
            std::max<double>(largest, std::abs(rows.values[here + d] - rows.values[there + d]));
      }
    }
  }
  return largest;
}

Measured measure(const Options& options, nn::PositionKind position, const ProgressSpan& progress) {
  TransformerConfig config = small_transformer(kWords);
  config.position = position;
  Experiment experiment(options, config, Task::translate);
  Measured measured;
  measured.losses = experiment.train({.steps = 600, .batch = 64}, different_words, progress);
  const std::vector<Example> tests =
      make_examples(options, different_words, options.scaled(kTests, 4));
  const std::vector<Tokens> found = experiment.generate(tests);
  measured.exact = exact_share(tests, found);
  measured.tokens = token_share(tests, found);
  measured.difference = permuted_difference(experiment, std::span(tests).first(4));
  return measured;
}

Verdict judge(const Figures& f) {
  const bool lost = f["exact_without"] <= 0.05 && f["difference_without"] <= 1e-3;
  const bool found = f["exact_with"] >= 0.9 && f["difference_with"] >= 0.1;
  return verdict_of(lost, found);
}

Result run(const Options& options) {
  const Measured without = measure(options, nn::PositionKind::none, {"without positions", 0, 0.5});
  const Measured with = measure(options, nn::PositionKind::sinusoidal, {"with positions", 0.5, 1});
  Result result;
  Figures& f = result.figures;
  f.set("exact_without", without.exact);
  f.set("exact_with", with.exact);
  f.set("words_without", without.tokens);
  f.set("words_with", with.tokens);
  f.set("difference_without", without.difference);
  f.set("difference_with", with.difference);
  result.table.columns = {"step", "loss_without", "loss_with"};
  Line lines[2] = {{.name = both("without positions", "위치 없음")},
                   {.name = both("with positions", "위치 있음")}};
  for (std::size_t i = 0; i < without.losses.size(); ++i) {
    result.table.add({std::to_string(i + 1), cell(without.losses[i]), cell(with.losses[i])});
    if (i % 10 != 0) continue;
    for (int k = 0; k < 2; ++k) {
      lines[k].x.push_back(static_cast<double>(i + 1));
      lines[k].y.push_back((k == 0 ? without : with).losses[i]);
    }
  }
  result.charts = {
      bar_chart(both("Sentences of six words, repeated in order", "여섯 단어를 순서대로 따라 쓰기"),
                {both("all six right", "여섯 모두 정답"), both("words right", "단어 정답")},
                {.label = both("share", "비율"), .low = 0, .high = 1.05},
                {{both("without positions", "위치 없음"), {without.exact, without.tokens}},
                 {both("with positions", "위치 있음"), {with.exact, with.tokens}}}),
      line_chart(both("Training", "학습"), {.label = both("step", "스텝")},
                 {.label = both("loss of a token (nats)", "토큰당 손실(nat)"), .low = 0},
                 {lines[0], lines[1]})};
  result.finding = {
      fmt::format("Without positions a model repeats {:.0f}% of sentences of six words in their "
                  "order, with sinusoidal positions {:.0f}%. Reversing a sentence changes a word's "
                  "vector by at most {:.1e} without and {:.2f} with positions.",
                  100 * without.exact, 100 * with.exact, without.difference, with.difference),
      fmt::format("위치가 없는 모델은 여섯 단어 문장의 {:.0f}%, 사인·코사인 위치를 더한 모델은 "
                  "{:.0f}%를 순서대로 따라 씁니다. 문장을 뒤집을 때 한 단어의 벡터는 위치가 없으면 "
                  "최대 {:.1e}, 있으면 {:.2f}만큼 달라집니다.",
                  100 * without.exact, 100 * with.exact, without.difference, with.difference)};
  result.not_shown = {
      "A decoder with a look-ahead mask can count its own tokens even without positions; only the "
      "order of the source is lost for certain.",
      "룩어헤드 마스크가 있는 디코더는 위치가 없어도 자기 토큰을 셀 수 있습니다. 확실히 사라지는 "
      "것은 입력 문장의 순서입니다."};
  return result;
}

}  // namespace

Lab order_lab() {
  return {
      .name = "order",
      .note = notes::kPositions,
      .question = {"Does attention know the order of words without positions?",
                   "위치 정보가 없으면 어텐션은 단어의 순서를 알까?"},
      .claim = {"Without positional encoding a Transformer cannot know the order: \"I love you\" "
                "and \"Love I you\" give nearly the same result.",
                "트랜스포머는 포지셔널 인코딩 없이는 순서를 알 수 없다. \"I love you\"와 \"Love I "
                "you\"의 결과가 매우 비슷하다."},
      .rule =
          {"It holds if, without positions, at most 5% of sentences come back in order and a "
           "word's vector changes by at most 0.001, and if, with positions, at least 90% do and it "
           "changes by at least 0.1; partly with one of the two, and it fails with none.",
           "위치 없이 순서를 맞힌 문장이 5% 이하이고 단어 벡터의 변화가 0.001 이하이며, 위치가 "
           "있을 때 90% 이상이고 변화가 0.1 이상이면 성립, 둘 중 하나만이면 부분 성립, 둘 다 "
           "아니면 성립하지 않습니다."},
      .judge = judge,
      .run = run};
}

}  // namespace nunchi::lab
