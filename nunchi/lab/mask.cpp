#include "nunchi/lab/mask.h"

#include <fmt/format.h>

#include "nunchi/lab/tasks.h"

namespace nunchi::lab {
namespace {

constexpr std::int64_t kWords = 20, kLength = 6, kTests = 200;
constexpr std::int32_t kSeparator = kFirstWord + kWords;
constexpr std::size_t kPrompt = 1 + kLength + 1;  // <s>, the words, the separator

// <s> six random words, a separator, the same words backwards, </s>
Example reversed_words(Draws& draws) {
  const Tokens words = random_words(draws, kLength, kWords);
  Tokens text = {kUsualSpecialTokens.begin};
  text.insert(text.end(), words.begin(), words.end());
  text.push_back(kSeparator);
  text.insert(text.end(), words.rbegin(), words.rend());
  text.push_back(kUsualSpecialTokens.end);
  return {.target = text};
}

struct Measured {
  std::vector<double> losses;
  double loss = 0, exact = 0, words = 0;
};

Measured measure(const Options& options, bool masked, const ProgressSpan& progress) {
  auto config = small_text_model<GptConfig>(kWords + 1, 64, 2);
  config.look_ahead_mask = masked;
  Experiment experiment(options, config, Task::text);
  Measured measured;
  measured.losses = experiment.train({.steps = 1200, .batch = 64}, reversed_words, progress);
  std::vector<Example> tests = make_examples(options, reversed_words, options.scaled(kTests, 4));
  measured.loss = experiment.loss(tests);
  const std::vector<Tokens> found =
      experiment.generate(tests, {.max_length = kLength + 4}, kPrompt);
  for (Example& test : tests) {
    test.target.assign(test.target.begin() + kPrompt, test.target.end() - 1);
  }
  measured.exact = exact_share(tests, found);
  measured.words = token_share(tests, found);
  return measured;
}

Verdict judge(const Figures& f) {
  const bool falls = f["loss_without"] <= 0.5 * f["loss_with"];
  const bool fails = f["exact_without"] <= 0.25 && f["exact_with"] >= 0.9;
  return verdict_of(falls, fails);
}

Result run(const Options& options) {
  const Measured with = measure(options, true, {"with the mask", 0, 0.5});
  const Measured without = measure(options, false, {"without the mask", 0.5, 1});
  Result result;
  Figures& f = result.figures;
  f.set("loss_with", with.loss);
  f.set("loss_without", without.loss);
  f.set("exact_with", with.exact);
  f.set("exact_without", without.exact);
  f.set("words_with", with.words);
  f.set("words_without", without.words);
  result.table.columns = {"step", "loss_with", "loss_without"};
  Line lines[2] = {{.name = both("with the mask", "마스크 있음")},
                   {.name = both("without", "마스크 없음")}};
  for (std::size_t i = 0; i < with.losses.size(); ++i) {
    result.table.add({std::to_string(i + 1), cell(with.losses[i]), cell(without.losses[i])});
    if (i % 20 != 0) continue;
    for (int k = 0; k < 2; ++k) {
      lines[k].x.push_back(static_cast<double>(i + 1));
      lines[k].y.push_back((k == 0 ? with : without).losses[i]);
    }
  }
  result.charts = {
      line_chart(both("Training", "학습"), {.label = both("step", "스텝")},
                 {.label = both("loss of a token (nats)", "토큰당 손실(nat)"), .low = 0},
                 {lines[0], lines[1]}),
      bar_chart(both("Generation: six words backwards", "생성: 여섯 단어 거꾸로 쓰기"),
                {both("all six right", "여섯 모두 정답"), both("words right", "단어 정답")},
                {.label = both("share", "비율"), .low = 0, .high = 1.05},
                {{both("with the mask", "마스크 있음"), {with.exact, with.words}},
                 {both("without", "마스크 없음"), {without.exact, without.words}}})};
  result.finding = {
      fmt::format("Trained without the mask, the loss falls to {:.3f}, below the {:.2f} with the "
                  "mask, which cannot predict the first, random words. But it generates {:.0f}% "
                  "of the reversed sentences correctly, against {:.0f}%.",
                  without.loss, with.loss, 100 * without.exact, 100 * with.exact),
      fmt::format("마스크 없이 학습하면 손실이 {:.3f}까지 떨어져, 앞부분의 무작위 단어를 "
                  "예측할 수 없는 마스크 있는 모델의 {:.2f}보다 낮습니다. 그러나 생성에서는 "
                  "{:.0f}%만 맞히고, 마스크가 있는 모델은 {:.0f}%를 맞힙니다.",
                  without.loss, with.loss, 100 * without.exact, 100 * with.exact)};
  result.not_shown = {
      "Padding masks: batches have no padding here. BERT has no such mask either, but it learns "
      "from hidden tokens, not from the next one.",
      "패딩 마스크는 다루지 않습니다(배치에 패딩이 없습니다). BERT에도 이 마스크가 없지만, BERT는 "
      "다음 토큰이 아니라 가려진 토큰으로 학습합니다."};
  return result;
}

}  // namespace

Lab mask_lab() {
  return {
      .name = "mask",
      .note = notes::kAttention,
      .question = {"What goes wrong without the look-ahead mask?",
                   "마스킹이 없으면 어떤 문제가 생길까?"},
      .claim =
          {"In training the tokens after the current one must be hidden: a model that sees them "
           "learns to copy, and cannot generate.",
           "학습 중에는 현재 토큰 이후를 가려야 한다. 보이면 베끼기만 배워서 생성하지 못한다."},
      .rule = {"It holds if, without the mask, the loss is at most half of that with it, and if at "
               "most 10% of the generated sentences are right against at least 90%; partly with "
               "one of the two, and it fails with none.",
               "마스크가 없을 때 손실이 있을 때의 절반 이하이고, 생성 정답이 25% 이하(있을 때 90% "
               "이상)이면 성립, 둘 중 하나만이면 부분 성립, 둘 다 아니면 성립하지 않습니다."},
      .judge = judge,
      .run = run};
}

}  // namespace nunchi::lab
