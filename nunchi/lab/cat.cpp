#include "nunchi/lab/cat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "nunchi/lab/tasks.h"
#include "nunchi/lab/vocabulary.h"

namespace nunchi::lab {
namespace {

struct Word {
  const char* korean;
  const char* english;
};
// With the particle that follows a final consonant or a vowel.
constexpr std::array kSubjects = {Word{"고양이 는", "cat"},   Word{"개 는", "dog"},
                                  Word{"아이 는", "child"},   Word{"새 는", "bird"},
                                  Word{"학생 은", "student"}, Word{"선생님 은", "teacher"},
                                  Word{"친구 는", "friend"},  Word{"의사 는", "doctor"}};
constexpr std::array kPlaces = {Word{"침대", "on the bed"},    Word{"의자", "on the chair"},
                                Word{"집", "in the house"},    Word{"공원", "in the park"},
                                Word{"학교", "at the school"}, Word{"도서관", "in the library"},
                                Word{"바닥", "on the floor"}};
constexpr std::array kVerbs = {Word{"잔다", "sleeps"}, Word{"논다", "plays"},
                               Word{"쉰다", "rests"},  Word{"웃는다", "laughs"},
                               Word{"운다", "cries"},  Word{"먹는다", "eats"}};
// The notes' other example: French words.
constexpr std::array kFrench = {Word{"merci", "thanks"}, Word{"bonjour", "hello"},
                                Word{"oui", "yes"},      Word{"non", "no"},
                                Word{"chat", "cat"},     Word{"chien", "dog"}};
constexpr std::int64_t kTests = 100;

Vocabulary make_vocabulary() {
  Vocabulary words;
  for (const Word& word : kSubjects) words.add_text(std::string(word.korean) + " " + word.english);
  for (const Word& word : kPlaces) words.add_text(std::string(word.korean) + " " + word.english);
  for (const Word& word : kVerbs) words.add_text(std::string(word.korean) + " " + word.english);
  for (const Word& word : kFrench) words.add_text(std::string(word.korean) + " " + word.english);
  words.add_text("에서 the");
  return words;
}

struct Sentence {
  std::size_t subject = 0, place = 0, verb = 0;
};
// One sentence in five is never trained on; the notes' sentence (0, 0, 0) is one of them.
bool held_out(const Sentence& s) { return (s.subject + s.place + s.verb) % 5 == 0; }

Example sentence_of(const Vocabulary& words, const Sentence& s) {
  const Word &subject = kSubjects[s.subject], &place = kPlaces[s.place], &verb = kVerbs[s.verb];
  return {.source =
              words.encode(fmt::format("{} {} 에서 {}", subject.korean, place.korean, verb.korean)),
          .target = words.encode(
              fmt::format("the {} {} {}", subject.english, verb.english, place.english))};
}
Example word_of(const Vocabulary& words, const Word& word) {
  return {.source = words.encode(word.korean), .target = words.encode(word.english)};
}

ExampleMaker sentences(const Vocabulary& words, bool tests) {
  return [&words, tests](Draws& draws) {
    const auto pick = [&](std::size_t count) {
      return static_cast<std::size_t>(draws.below(static_cast<std::int64_t>(count)));
    };
    if (!tests && pick(5) == 0) return word_of(words, kFrench[pick(kFrench.size())]);
    Sentence s;
    do {
      s = {pick(kSubjects.size()), pick(kPlaces.size()), pick(kVerbs.size())};
    } while (held_out(s) != tests);
    return sentence_of(words, s);
  };
}

// The probability of the whole answer, its end included.
double probability(const Experiment& experiment, const Example& example) {
  return std::exp(-experiment.loss(std::span(&example, 1)) *
                  static_cast<double>(example.target.size() + 1));
}

HeatMap map_of(const std::string& title, const Weights& weights, std::vector<std::string> rows,
               std::vector<std::string> columns) {
  HeatMap map{.title = title,
              .rows = std::move(rows),
              .value_label = both("weight", "가중치"),
              .print_values = true};
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      map.values.push_back(weights.at(static_cast<std::int64_t>(r), static_cast<std::int64_t>(c)));
    }
  }
  map.columns = std::move(columns);
  map.x_label = both("word looked at", "보는 단어");
  map.y_label = both("word", "단어");
  return map;
}

std::vector<std::string> words_of(const Vocabulary& words, const Tokens& tokens) {
  std::vector<std::string> all;
  for (const std::int32_t token : tokens) all.push_back(words.word(token));
  return all;
}

Verdict judge(const Figures& f) {
  const bool learned = f["cat_sentence_right"] == 1 && f["exact_held_out"] >= 0.95 &&
                       f["thanks_before"] <= 0.1 && f["thanks_after"] >= 0.9;
  const bool most_on_sleeps = f["cat_most_on_sleeps"] == 1;
  return verdict_of(learned, most_on_sleeps);
}

Result run(const Options& options) {
  const Vocabulary words = make_vocabulary();
  Experiment experiment(options, small_transformer(words.size()), Task::translate);
  const Example cat = sentence_of(words, {}), merci = word_of(words, kFrench[0]);
  Result result;
  Figures& f = result.figures;
  const std::string before =
      words.decode(experiment.generate(std::span(&cat, 1), {.max_length = 8})[0]);
  f.set("thanks_before", probability(experiment, merci));
  experiment.train({.steps = 700, .batch = 48}, sentences(words, false), {"teaching", 0, 0.95});
  f.set("thanks_after", probability(experiment, merci));
  const std::vector<Example> tests =
      make_examples(options, sentences(words, true), options.scaled(kTests, 4));
  f.set("exact_held_out", exact_share(tests, experiment.generate(tests)));
  const Tokens found = experiment.generate(std::span(&cat, 1))[0];
  f.set("cat_sentence_right", found == cat.target ? 1 : 0);

  const Trace trace = experiment.trace(std::span(&cat, 1), {Tap::attention_weights});
  // In which layer, if any, does 고양이 look at 잔다 most? The note shows one matrix: the last
  // layer.
  const Weights self = weights_of(*trace.find(Tap::attention_weights, "encoder", 1), 0);
  const Weights cross =
      weights_of(*trace.find(Tap::attention_weights, "decoder", 1, "cross_attention"), 0);
  const std::int64_t sleeps = std::ssize(cat.source) - 1;
  double largest = 0;
  for (std::int64_t k = 0; k < std::ssize(cat.source); ++k)
    largest = std::max(largest, self.at(0, k));
  f.set("cat_on_sleeps", self.at(0, sleeps));
  f.set("cat_most_on_sleeps", self.at(0, sleeps) >= largest ? 1 : 0);
  std::vector<std::string> korean = words_of(words, cat.source),
                           english = words_of(words, cat.target);
  korean.emplace_back("</s>");
  english.emplace_back("</s>");
  result.table.columns = {"korean", "weight_of_고양이"};
  for (std::size_t k = 0; k < korean.size(); ++k) {
    result.table.add({korean[k], cell(self.at(0, static_cast<std::int64_t>(k)))});
  }
  result.charts = {
      map_of(both("Self-attention, last encoder layer", "셀프 어텐션, 인코더 마지막 층"), self,
             korean, korean),
      map_of(both("Cross-attention of each next word", "다음 단어의 크로스 어텐션"), cross, english,
             korean),
      plain_bars("P(thanks | merci)",
                 {both("before training", "학습 전"), both("after training", "학습 후")},
                 {.label = both("probability", "확률"), .low = 0, .high = 1.05},
                 {f["thanks_before"], f["thanks_after"]})};
  const std::string after = words.decode(found);
  result.finding = {
      fmt::format("\"고양이 는 침대 에서 잔다\", which is not in the training data, becomes \"{}\" "
                  "(before training: \"{}\"); {:.0f}% of all held-out sentences are right. "
                  "P(thanks | merci) rises from {:.4f} to {:.4f}. In the last encoder layer 고양이 "
                  "puts {:.2f} of its weight on 잔다 (the note shows 0.48).",
                  after, before, 100 * f["exact_held_out"], f["thanks_before"], f["thanks_after"],
                  f["cat_on_sleeps"]),
      fmt::format(
          "학습 데이터에 없는 \"고양이 는 침대 에서 잔다\"를 \"{}\"로 번역합니다(학습 전: \"{}\"). "
          "보지 못한 문장의 {:.0f}%를 맞힙니다. P(thanks | merci)는 {:.4f}에서 {:.4f}로 오릅니다. "
          "인코더 마지막 층에서 고양이는 잔다에 {:.2f}의 가중치를 둡니다(노트에는 0.48).",
          after, before, 100 * f["exact_held_out"], f["thanks_before"], f["thanks_after"],
          f["cat_on_sleeps"])};
  result.not_shown = {
      "Whether a model of real Korean attends in this way: this one knows 336 sentences, and "
      "translating them does not require 고양이 to look at 잔다 at all.",
      "실제 한국어 모델이 이렇게 주목하는지는 보이지 않습니다. 이 모델은 문장 336개를 알 뿐이고, "
      "그것을 번역하는 데 고양이가 잔다를 볼 필요는 없습니다."};
  return result;
}

}  // namespace

Lab cat_lab() {
  return {
      .name = "cat",
      .note = notes::kAttention,
      .question = {"What does a model do with 고양이는 침대에서 잔다, and with merci?",
                   "모델은 '고양이는 침대에서 잔다'와 'merci'를 어떻게 다룰까?"},
      .claim = {"Training turns a nonsense distribution for merci into thanks; in 고양이는 "
                "침대에서 잔다, 고양이 attends to 잔다 most (0.48).",
                "학습은 merci에 대한 엉뚱한 확률 분포를 thanks로 바꾼다. 고양이는 침대에서 "
                "잔다에서 고양이는 잔다에 가장 집중한다(0.48)."},
      .rule =
          {"It holds if the sentence and 95% of the held-out ones are translated, with P(thanks | "
           "merci) at most 0.1 before and at least 0.9 after training, and if 고양이 puts its "
           "largest weight on 잔다; partly with one of the two, and it fails with none.",
           "이 문장과 보지 못한 문장의 95%를 번역하고 P(thanks | merci)가 학습 전 0.1 이하에서 "
           "학습 후 0.9 이상이 되며, 고양이의 가장 큰 가중치가 잔다에 있으면 성립, 둘 중 "
           "하나만이면 부분 성립, 둘 다 아니면 성립하지 않습니다."},
      .judge = judge,
      .run = run};
}

}  // namespace nunchi::lab
