#include "nunchi/lab/heads.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "nunchi/lab/tasks.h"

namespace nunchi::lab {
namespace {

constexpr std::int64_t kLetters = 5, kLength = 12, kTests = 300, kWidth = 64;
constexpr std::int32_t kHole = kFirstWord + kLetters;  // stands at the position to fill
constexpr std::int64_t kWords = kLetters + 1 + kLetters * kLetters * kLetters;

// The word that three letters decide together.
std::int32_t word_of(std::int32_t first, std::int32_t before, std::int32_t after) {
  const auto index = [](std::int32_t letter) { return letter - kFirstWord; };
  return kHole + 1 +
         static_cast<std::int32_t>((index(first) * kLetters + index(before)) * kLetters +
                                   index(after));
}

// Letters with one hole. The label is decided by the first letter of the text, the one before the
// hole and the one after it.
Example letters_with_hole(Draws& draws) {
  Tokens text = random_words(draws, kLength, kLetters);
  const std::int32_t hole = 2 + draws.below(kLength - 3);
  const auto at = [&](std::int32_t i) { return text[static_cast<std::size_t>(i)]; };
  const std::int32_t label = word_of(at(0), at(hole - 1), at(hole + 1));
  text[static_cast<std::size_t>(hole)] = kHole;
  return {.target = text, .positions = {hole}, .labels = {label}};
}

// Where a head looks from the hole.
constexpr std::array kKinds = {"first", "previous", "next", "itself"};
const std::string& kind_name(std::size_t kind) {
  static const std::array<std::string, 4> names = {both("first", "첫"), both("previous", "앞"),
                                                   both("next", "뒤"), both("itself", "자신")};
  return names[kind];
}
constexpr double kClear = 0.5;  // a head has a kind if it puts this much of its weight there

struct Measured {
  double accuracy = 0, diagonal = 0;
  std::vector<std::array<double, 4>> shares;  // of each head, by kind
  int kinds = 0;                              // different kinds among the heads
};

Measured measure(const Options& options, int heads, const ProgressSpan& progress) {
  auto config = small_text_model<BertConfig>(kWords, kWidth, 1);
  config.heads = heads;
  Experiment experiment(options, config, Task::fill);
  experiment.train({.steps = 1500, .batch = 64}, letters_with_hole, progress);
  const std::vector<Example> tests =
      make_examples(options, letters_with_hole, options.scaled(kTests, 4));
  Measured measured{.accuracy = label_share(tests, experiment.fill(tests))};
  const Trace trace = experiment.trace(tests, {Tap::attention_weights});
  const TapRecord& record = *trace.find(Tap::attention_weights, "encoder", 0);
  std::set<std::size_t> kinds;
  for (int head = 0; head < heads; ++head) {
    std::array<double, 4> shares{};
    double diagonal = 0;
    for (std::size_t s = 0; s < tests.size(); ++s) {
      const Weights weights = weights_of(record, s, head);
      const std::int64_t hole = tests[s].positions[0];
      const double part = 1.0 / static_cast<double>(tests.size());
      shares[0] += weights.at(hole, 0) * part;
      shares[1] += weights.at(hole, hole - 1) * part;
      shares[2] += weights.at(hole, hole + 1) * part;
      shares[3] += weights.at(hole, hole) * part;
      for (std::int64_t i = 0; i < weights.queries; ++i) {
        diagonal += weights.at(i, i) * part / static_cast<double>(weights.queries);
      }
    }
    measured.diagonal += diagonal / heads;
    const auto best = static_cast<std::size_t>(std::ranges::max_element(shares) - shares.begin());
    if (shares[best] >= kClear) kinds.insert(best);
    measured.shares.push_back(shares);
  }
  measured.kinds = static_cast<int>(kinds.size());
  return measured;
}

HeatMap shares_map(const Measured& measured) {
  HeatMap map{.title = both("Where each of eight heads looks", "여덟 헤드가 보는 곳"),
              .x_label = both("letter, seen from the hole", "빈칸에서 본 글자"),
              .y_label = both("head", "헤드"),
              .value_label = both("weight", "가중치"),
              .print_values = true};
  for (std::size_t k = 0; k < kKinds.size(); ++k) map.columns.push_back(kind_name(k));
  for (std::size_t h = 0; h < measured.shares.size(); ++h) {
    map.rows.push_back(std::to_string(h + 1));
    map.values.insert(map.values.end(), measured.shares[h].begin(), measured.shares[h].end());
  }
  return map;
}

Verdict judge(const Figures& f) {
  const bool better =
      f["accuracy_8"] >= f["accuracy_1"] + 0.05 || f["accuracy_4"] >= f["accuracy_1"] + 0.05;
  const bool specialise = f["kinds_8"] >= 2 || f["kinds_4"] >= 2;
  const bool single_on_itself =
      f["diagonal_1"] > f["diagonal_4"] && f["diagonal_1"] > f["diagonal_8"];
  if (better && specialise && single_on_itself) return Verdict::holds;
  return better || specialise || single_on_itself ? Verdict::partly : Verdict::fails;
}

Result run(const Options& options) {
  constexpr std::array kHeads = {1, 4, 8};
  Result result;
  result.table.columns = {"heads", "head", "first", "previous", "next", "itself"};
  Bars accuracy, diagonal;
  HeatMap map;
  for (std::size_t i = 0; i < kHeads.size(); ++i) {
    const int heads = kHeads[i];
    const double begin = static_cast<double>(i) / kHeads.size();
    const Measured measured =
        measure(options, heads, {"heads", begin, begin + 1.0 / kHeads.size()});
    result.figures.set(fmt::format("accuracy_{}", heads), measured.accuracy);
    result.figures.set(fmt::format("kinds_{}", heads), measured.kinds);
    result.figures.set(fmt::format("diagonal_{}", heads), measured.diagonal);
    accuracy.values.push_back(measured.accuracy);
    diagonal.values.push_back(measured.diagonal);
    for (std::size_t h = 0; h < measured.shares.size(); ++h) {
      std::vector<std::string> row = {std::to_string(heads), std::to_string(h + 1)};
      for (const double share : measured.shares[h]) row.push_back(cell(share));
      result.table.add(std::move(row));
    }
    map = shares_map(measured);
  }
  const std::vector<std::string> categories = {
      both("1 head", "헤드 1개"), both("4 heads", "헤드 4개"), both("8 heads", "헤드 8개")};
  result.charts = {
      bar_chart(both("Holes filled correctly", "빈칸 정답"), categories,
                {.label = both("share", "비율"), .low = 0, .high = 1.05}, {accuracy}),
      map,
      bar_chart(both("Weight of a word on itself", "단어가 자기 자신에 두는 가중치"), categories,
                {.label = both("weight", "가중치"), .low = 0}, {diagonal})};
  const Figures& f = result.figures;
  result.finding = {
      fmt::format("A hole is decided by three letters: the first, the previous and the next. With "
                  "1, 4 and 8 heads of one width (64), {:.0f}%, {:.0f}% and {:.0f}% are filled "
                  "correctly; the heads have {:.0f}, {:.0f} and {:.0f} different kinds; a word's "
                  "mean weight on itself is {:.2f}, {:.2f} and {:.2f}.",
                  100 * f["accuracy_1"], 100 * f["accuracy_4"], 100 * f["accuracy_8"], f["kinds_1"],
                  f["kinds_4"], f["kinds_8"], f["diagonal_1"], f["diagonal_4"], f["diagonal_8"]),
      fmt::format(
          "빈칸은 첫 글자, 바로 앞 글자, 바로 뒤 글자가 함께 정합니다. 같은 폭(64)에서 헤드가 1, "
          "4, 8개일 때 {:.0f}%, {:.0f}%, {:.0f}%를 맞히고, 헤드의 종류는 {:.0f}, {:.0f}, "
          "{:.0f}가지이며, 단어가 자기 자신에 두는 평균 가중치는 {:.2f}, {:.2f}, {:.2f}입니다.",
          100 * f["accuracy_1"], 100 * f["accuracy_4"], 100 * f["accuracy_8"], f["kinds_1"],
          f["kinds_4"], f["kinds_8"], f["diagonal_1"], f["diagonal_4"], f["diagonal_8"])};
  result.not_shown = {
      "Whether one head must fail: with some seeds it learns the task as well, by giving the three "
      "letters different weights. Grammar and meaning: the task has places only. Heads of real "
      "translation models seldom have "
      "one clear role, and many can be removed without loss.",
      "헤드 하나로는 안 된다는 것은 보이지 않습니다. 세 글자에 서로 다른 가중치를 두어 같은 과제를 "
      "푸는 시드도 있습니다. 문법과 의미의 분화도 보이지 않습니다. 이 과제에는 위치만 있습니다. "
      "실제 번역 모델의 헤드는 "
      "역할이 뚜렷하지 않은 경우가 많고, 없애도 성능이 그대로인 헤드도 많습니다."};
  return result;
}

}  // namespace

Lab heads_lab() {
  return {
      .name = "heads",
      .note = notes::kAttention,
      .question = {"Do several heads look at different things, and does it help?",
                   "여러 헤드는 서로 다른 곳을 볼까, 그리고 도움이 될까?"},
      .claim = {"Several heads specialise in different aspects, such as position, and understand "
                "the context better than a single one, which tends to attend to itself.",
                "여러 헤드는 위치 같은 서로 다른 측면을 나누어 맡아, 자기 자신에 집중하기 쉬운 "
                "단일 어텐션보다 문맥을 더 잘 이해한다."},
      .rule = {"It holds if 4 or 8 heads fill at least 5 points more holes than one, have at least "
               "two different kinds (a kind puts half of its weight on one place), and put less "
               "weight on the word itself than a single head does; partly with some of the three, "
               "and it fails with none.",
               "헤드 4개나 8개가 1개보다 5%p 이상 더 맞히고, 종류가 둘 이상이며(한 곳에 가중치의 "
               "절반 이상을 두면 하나의 종류), 자기 자신에 두는 가중치가 단일 헤드보다 작으면 "
               "성립, 셋 중 일부만이면 부분 성립, 하나도 아니면 성립하지 않습니다."},
      .judge = judge,
      .run = run};
}

}  // namespace nunchi::lab
