#include "nunchi/lab/length.h"

#include <fmt/format.h>

#include <array>
#include <numeric>

#include "nunchi/lab/tasks.h"

namespace nunchi::lab {
namespace {

constexpr std::int64_t kWords = 12, kTrained = 10, kTests = 60;
constexpr std::int64_t kTested = 20;  // words of the long sentences
constexpr std::array<std::int64_t, 6> kLengths = {3, 6, 10, 12, 15, 20};

// The share of words that are right at each position of the target.
std::vector<double> share_by_position(std::span<const Example> tests,
                                      std::span<const Tokens> found) {
  std::vector<double> right(tests[0].target.size(), 0);
  for (std::size_t i = 0; i < tests.size(); ++i) {
    for (std::size_t k = 0; k < right.size(); ++k) {
      const bool same = k < found[i].size() && found[i][k] == tests[i].target[k];
      right[k] += same ? 1.0 / static_cast<double>(tests.size()) : 0;
    }
  }
  return right;
}

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

struct Kind {
  nn::PositionKind position;
  std::string_view key;
};
constexpr std::array kKinds = {
    Kind{nn::PositionKind::sinusoidal, "sinusoidal"}, Kind{nn::PositionKind::learned, "learned"},
    Kind{nn::PositionKind::rotary, "rotary"},         Kind{nn::PositionKind::relative, "relative"},
    Kind{nn::PositionKind::alibi, "alibi"},           Kind{nn::PositionKind::none, "none"}};

Verdict judge(const Figures& f) {
  if (f["sinusoidal_10"] < 0.9) return Verdict::fails;
  if (f["sinusoidal_beyond"] >= 0.9) return Verdict::holds;
  return f["sinusoidal_beyond"] >= 0.5 ? Verdict::partly : Verdict::fails;
}

Result run(const Options& options) {
  Result result;
  result.table.columns = {"position", "length", "sentences_right", "words_right"};
  std::vector<Line> by_length, by_position;
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    const double begin = static_cast<double>(i) / kKinds.size();
    const std::string key(kKinds[i].key);
    TransformerConfig config = small_transformer(kWords);
    config.position = kKinds[i].position;
    config.max_positions = 64;
    config.scale_embeddings = config.position == nn::PositionKind::sinusoidal;
    Experiment experiment(options, config, Task::translate);
    experiment.train({.steps = 800, .batch = 48}, copying(2, kTrained, kWords),
                     {key, begin, begin + 1.0 / kKinds.size()});
    Line lengths{.name = key}, positions{.name = key};
    for (const std::int64_t length : kLengths) {
      const std::vector<Example> tests =
          make_examples(options, copying(length, length, kWords), options.scaled(kTests, 4));
      const std::vector<Tokens> found = experiment.generate(tests);
      const std::vector<double> shares = share_by_position(tests, found);
      lengths.x.push_back(static_cast<double>(length));
      lengths.y.push_back(exact_share(tests, found));
      result.table.add(
          {key, std::to_string(length), cell(lengths.y.back()), cell(mean_of(shares))});
      if (length == kTrained) result.figures.set(key + "_10", mean_of(shares));
      if (length == 15)
        result.figures.set(key + "_beyond", mean_of(std::span(shares).subspan(kTrained)));
      if (length != kTested) continue;
      for (std::size_t k = 0; k < shares.size(); ++k) {
        positions.x.push_back(static_cast<double>(k + 1));
        positions.y.push_back(shares[k]);
      }
    }
    by_length.push_back(lengths);
    by_position.push_back(positions);
  }
  const Axis share{.label = both("share", "비율"), .low = 0, .high = 1.02};
  result.charts = {
      line_chart(both("Sentences right, trained on 2 to 10 words", "문장 정답 (2–10단어로 학습)"),
                 {.label = both("length (words)", "길이(단어)")}, share, by_length),
      line_chart(both("Words right in sentences of 20 words", "20단어 문장의 단어 정답"),
                 {.label = both("position of the word", "단어의 위치")}, share, by_position)};
  const Figures& f = result.figures;
  std::string each;
  for (const Kind& kind : kKinds) {
    each += fmt::format("{}{} {:.0f}% / {:.0f}%", each.empty() ? "" : ", ", kind.key,
                        100 * f[fmt::format("{}_10", kind.key)],
                        100 * f[fmt::format("{}_beyond", kind.key)]);
  }
  result.finding = {
      "After training on at most 10 words, words right in sentences of 10 words / words 11 to 15 "
      "of sentences of 15 words: " +
          each + ".",
      "최대 10단어로 학습한 뒤 10단어 문장의 단어 정답 / 15단어 문장에서 11–15번째 단어의 정답: " +
          each + "."};
  result.not_shown = {
      "Training on many lengths, which is what helps in practice; and tasks that need only near "
      "words, where relative positions and ALiBi keep more of their quality.",
      "실제로 도움이 되는, 다양한 길이로 하는 학습은 보이지 않습니다. 가까운 단어만 필요한 "
      "과제라면 상대 위치와 ALiBi가 더 잘 버팁니다."};
  return result;
}

}  // namespace

Lab length_lab() {
  return {
      .name = "length",
      .note = notes::kPositions,
      .question = {"Do sin/cos positions work for sentences longer than those in training?",
                   "sin/cos 위치는 학습 때 보지 못한 긴 문장에도 통할까?"},
      .claim =
          {"Sinusoidal positions can handle sentences of lengths that were not seen in training.",
           "sin/cos PE는 학습 중에 보지 못한 길이의 문장도 대응 가능하다."},
      .rule = {"It holds if sinusoidal positions repeat at least 90% of the words at 10 words, the "
               "longest length in training, and at least 90% of words 11 to 15 of longer "
               "sentences; partly if at least half of those; otherwise it fails.",
               "사인·코사인 위치가 학습한 최대 길이인 10단어에서 90% 이상을 맞히고 더 긴 문장의 "
               "11–15번째 단어도 90% 이상 맞히면 성립, 절반 이상이면 부분 성립, 아니면 성립하지 "
               "않습니다."},
      .judge = judge,
      .run = run};
}

}  // namespace nunchi::lab
