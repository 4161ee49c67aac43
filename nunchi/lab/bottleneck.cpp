#include "nunchi/lab/bottleneck.h"

#include <fmt/format.h>

#include <array>

#include "nunchi/lab/tasks.h"

namespace nunchi::lab {
namespace {

constexpr std::int64_t kWords = 20, kShortest = 2, kLongest = 20, kTests = 100;
constexpr std::array<std::int64_t, 6> kLengths = {2, 4, 8, 12, 16, 20};

struct Kind {
  std::string_view key;
  std::string name;
  ModelConfig config;
};

Verdict judge(const Figures& f) {
  const bool forgets = f["rnn_4"] - f["rnn_20"] >= 0.3;
  const bool attends =
      f["rnn_attention_20"] >= f["rnn_20"] + 0.3 && f["transformer_20"] >= f["rnn_20"] + 0.3;
  return verdict_of(forgets, attends);
}

Result run(const Options& options) {
  const std::vector<Kind> kinds = {{"rnn", "RNN", small_rnn(kWords, RnnAttention::none)},
                                   {"rnn_attention", both("RNN + attention", "RNN + 어텐션"),
                                    small_rnn(kWords, RnnAttention::additive)},
                                   {"transformer", "Transformer", small_transformer(kWords)}};
  Result result;
  result.table.columns = {"length", "model", "words_right"};
  std::vector<Line> lines;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const double begin = static_cast<double>(i) / static_cast<double>(kinds.size());
    Experiment experiment(options, kinds[i].config, Task::translate);
    experiment.train({.steps = 1200, .batch = 64, .peak = 3e-3},
                     copying(kShortest, kLongest, kWords),
                     {kinds[i].key, begin, begin + 1.0 / static_cast<double>(kinds.size())});
    Line line{.name = kinds[i].name};
    for (const std::int64_t length : kLengths) {
      const std::vector<Example> tests =
          make_examples(options, copying(length, length, kWords), options.scaled(kTests, 4));
      const double right = token_share(tests, experiment.generate(tests));
      line.x.push_back(static_cast<double>(length));
      line.y.push_back(right);
      result.figures.set(fmt::format("{}_{}", kinds[i].key, length), right);
      result.table.add({std::to_string(length), std::string(kinds[i].key), cell(right)});
    }
    lines.push_back(std::move(line));
  }
  result.charts = {line_chart(
      both("Words repeated correctly, by length", "길이별로 맞게 따라 쓴 단어"),
      {.label = both("length (words)", "길이(단어)")},
      {.label = both("words right (share)", "단어 정답(비율)"), .low = 0, .high = 1.02}, lines)};
  const Figures& f = result.figures;
  result.finding = {
      fmt::format("The RNN repeats {:.0f}% of the words of sentences of 4 words and {:.0f}% at 20. "
                  "With attention it is {:.0f}% and {:.0f}%, the Transformer {:.0f}% and {:.0f}%, "
                  "after the same 1,200 steps.",
                  100 * f["rnn_4"], 100 * f["rnn_20"], 100 * f["rnn_attention_4"],
                  100 * f["rnn_attention_20"], 100 * f["transformer_4"], 100 * f["transformer_20"]),
      fmt::format(
          "같은 1,200스텝 뒤에 RNN은 4단어 문장에서 {:.0f}%, 20단어 문장에서 {:.0f}%의 단어를 맞게 "
          "따라 씁니다. 어텐션을 더하면 {:.0f}%와 {:.0f}%, Transformer는 {:.0f}%와 {:.0f}%입니다.",
          100 * f["rnn_4"], 100 * f["rnn_20"], 100 * f["rnn_attention_4"],
          100 * f["rnn_attention_20"], 100 * f["transformer_4"], 100 * f["transformer_20"])};
  result.not_shown = {
      "A wider state or longer training would move the RNN's limit, not remove it. Random words "
      "cannot be guessed from their neighbours; those of a language partly can.",
      "상태를 넓히거나 더 오래 학습하면 RNN의 한계는 멀어지지만 없어지지는 않습니다. 무작위 단어와 "
      "달리 실제 언어의 단어는 이웃에서 어느 정도 짐작할 수 있습니다."};
  return result;
}

}  // namespace

Lab bottleneck_lab() {
  return {.name = "bottleneck",
          .note = notes::kSeq2Seq,
          .question = {"Does an RNN forget long sentences, and does attention help?",
                       "RNN은 긴 문장을 잊을까, 어텐션은 이를 해결할까?"},
          .claim = {"The encoder compresses the input into one vector, so information of long "
                    "sentences is lost; attention over all encoder states removes this bottleneck.",
                    "인코더가 입력을 벡터 하나로 압축하므로 긴 문장의 정보가 사라진다. 인코더의 "
                    "모든 상태를 보는 어텐션이 이 병목을 없앤다."},
          .rule = {"It holds if the RNN loses at least 30 points between 4 and 20 words, and if at "
                   "20 words both models with attention are at least 30 points above it; partly "
                   "with one of the two, and it fails with none.",
                   "RNN의 정답률이 4단어에서 20단어로 가며 30%p 이상 떨어지고, 20단어에서 어텐션을 "
                   "쓰는 두 모델이 모두 30%p 이상 높으면 성립, 둘 중 하나만이면 부분 성립, 둘 다 "
                   "아니면 성립하지 않습니다."},
          .judge = judge,
          .run = run};
}

}  // namespace nunchi::lab
