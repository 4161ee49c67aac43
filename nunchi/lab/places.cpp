#include "nunchi/lab/places.h"

#include <fmt/format.h>

#include "nunchi/lab/tasks.h"

namespace nunchi::lab {
namespace {

constexpr std::int64_t kWords = 20, kShortest = 4, kLongest = 12, kTests = 400;
constexpr std::int32_t kPositive = kFirstWord + kWords, kNegative = kPositive + 1;

// <s> words </s>: half of the words are positive, and one of them alone decides the label, which is
// predicted at <s>.
ExampleMaker decided_by(bool first) {
  return [first](Draws& draws) {
    const Tokens words =
        random_words(draws, kShortest + draws.below(kLongest - kShortest + 1), kWords);
    const std::int32_t deciding = first ? words.front() : words.back();
    Tokens text = {kUsualSpecialTokens.begin};
    text.insert(text.end(), words.begin(), words.end());
    text.push_back(kUsualSpecialTokens.end);
    return Example{
        .target = text, .positions = {0}, .labels = {deciding % 2 == 0 ? kPositive : kNegative}};
  };
}

Verdict judge(const Figures& f) {
  const bool head = f["sinusoidal_first"] < 0.75, tail = f["sinusoidal_last"] < 0.75;
  return verdict_of(head, tail);
}

Result run(const Options& options) {
  Result result;
  result.table.columns = {"position", "deciding_word", "accuracy"};
  std::vector<Bars> bars;
  double begin = 0;
  for (const bool sinusoidal : {true, false}) {
    Bars one{.name =
                 sinusoidal ? both("sinusoidal", "사인·코사인") : both("learned", "학습되는 위치")};
    for (const bool first : {true, false}) {
      auto config = small_text_model<BertConfig>(kWords + 2, 64, 2);
      if (!sinusoidal) {
        config.position = nn::PositionKind::learned;
        config.max_positions = kLongest + 2;
        config.scale_embeddings = false;
      }
      Experiment experiment(options, config, Task::fill);
      experiment.train({.steps = 600, .batch = 64, .peak = 1e-3}, decided_by(first),
                       {sinusoidal ? "sinusoidal" : "learned", begin, begin + 0.25});
      begin += 0.25;
      const std::vector<Example> tests =
          make_examples(options, decided_by(first), options.scaled(kTests, 8));
      const double right = label_share(tests, experiment.fill(tests));
      one.values.push_back(right);
      const char* position = sinusoidal ? "sinusoidal" : "learned";
      const char* place = first ? "first" : "last";
      result.figures.set(fmt::format("{}_{}", position, place), right);
      result.table.add({position, place, cell(right)});
    }
    bars.push_back(one);
  }
  result.charts = {bar_chart(
      both("Sentiment decided by one word", "한 단어가 정하는 감정"),
      {both("the first word", "첫 단어"), both("the last word", "마지막 단어")},
      {.label = both("labels right (share)", "레이블 정답(비율)"), .low = 0, .high = 1.05}, bars)};
  const Figures& f = result.figures;
  result.finding = {
      fmt::format(
          "If the first word decides the label, sinusoidal positions reach {:.0f}% and learned "
          "ones {:.0f}%; if the last word does, {:.0f}% and {:.0f}%. Guessing gives 50%.",
          100 * f["sinusoidal_first"], 100 * f["learned_first"], 100 * f["sinusoidal_last"],
          100 * f["learned_last"]),
      fmt::format("첫 단어가 레이블을 정하면 사인·코사인 위치는 {:.0f}%, 학습되는 위치는 {:.0f}%를 "
                  "맞히고, 마지막 단어가 정하면 {:.0f}%와 {:.0f}%를 맞힙니다. 찍으면 50%입니다.",
                  100 * f["sinusoidal_first"], 100 * f["learned_first"], 100 * f["sinusoidal_last"],
                  100 * f["learned_last"])};
  result.not_shown = {
      "Real sentiment, where no single place decides. The rows of sin/cos have nothing to learn, "
      "but the matrices that read them do.",
      "한 자리가 모든 것을 정하지 않는 실제 감정 분석은 보이지 않습니다. sin/cos 벡터에는 학습할 "
      "것이 없지만 그것을 읽는 행렬은 학습됩니다."};
  return result;
}

}  // namespace

Lab places_lab() {
  return {
      .name = "places",
      .note = notes::kPositions,
      .question = {"Can a model with sin/cos positions learn which places of a sentence matter?",
                   "sin/cos 위치로도 문장의 중요한 자리를 학습할 수 있을까?"},
      .claim = {"With sinusoidal positions a model cannot learn important places, such as the "
                "beginning and the end of a sentence in sentiment analysis.",
                "sin/cos PE는 감정 분석 같은 태스크에서 중요한 위치(문장 맨 앞, 맨 뒤)를 학습할 수 "
                "없다."},
      .rule = {"It holds if sinusoidal positions stay below 75% for the first word and for the "
               "last; partly for one of the two; it fails if both are learned.",
               "사인·코사인 위치가 첫 단어와 마지막 단어 모두에서 75% 미만이면 성립, 하나만이면 "
               "부분 성립, 둘 다 학습되면 성립하지 않습니다."},
      .judge = judge,
      .run = run};
}

}  // namespace nunchi::lab
