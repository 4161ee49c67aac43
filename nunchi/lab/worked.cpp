#include "nunchi/lab/worked.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "nunchi/lab/positions.h"
#include "nunchi/ops/attention.h"
#include "nunchi/ops/residual_norm.h"
#include "nunchi/ops/tensors.h"

namespace nunchi::lab {
namespace {

// A printed number follows if the computed one rounds to it.
constexpr double kRounding = 0.0051;

std::string vector_text(std::span<const double> values) {
  std::string text;
  for (const double value : values)
    text += fmt::format("{}{:.3g}", text.empty() ? "" : ", ", value);
  return "[" + text + "]";
}

bool follows(std::span<const double> printed, std::span<const double> computed) {
  return std::equal(printed.begin(), printed.end(), computed.begin(), computed.end(),
                    [](double a, double b) { return std::abs(a - b) <= kRounding; });
}

// The attention kernel's softmax of given scores: one query [1] over keys [score].
std::vector<double> softmax(ContextBase& context, std::span<const double> scores) {
  const std::int32_t query_length[] = {1};
  const std::int32_t key_length[] = {static_cast<std::int32_t>(scores.size())};
  const Ragged queries = make_ragged(context, query_length),
               keys = make_ragged(context, key_length);
  std::vector<float> rows(static_cast<std::size_t>(keys.capacity), 0);
  std::copy(scores.begin(), scores.end(), rows.begin());
  const Tensor q = from_host(context, std::vector<float>{1}, {1, 1});
  const Tensor k = from_host(context, rows, {keys.capacity, 1});
  return to_host_f64(attention_weights(q, k, queries, keys, {.heads = 1, .scale = 1}).weights);
}

// The library's residual sum and LayerNorm of one row.
struct AddNorm {
  std::vector<double> sum, out;
};
AddNorm add_norm(ContextBase& context, const std::vector<float>& x,
                 const std::vector<float>& branch) {
  const std::int32_t lengths[] = {1};
  const Shape row{1, std::ssize(x)};
  const std::vector<float> ones(x.size(), 1), zero(x.size(), 0);
  const Norm norm{.gamma = Variable(from_host(context, ones, {std::ssize(x)})),
                  .beta = Variable(from_host(context, zero, {std::ssize(x)}))};
  const auto [sum, out] =
      residual_norm(Variable(from_host(context, x, row)), Variable(from_host(context, branch, row)),
                    make_ragged(context, lengths), norm);
  return {to_host_f64(sum.value()), to_host_f64(out.value())};
}

// Collects the statements, what they print and what follows.
class Sheet {
 public:
  explicit Sheet(Result& result) : result_(result) {
    result.table.columns = {"note", "statement", "printed", "computed", "follows"};
  }
  void add(std::string_view note, const std::string& statement, std::span<const double> printed,
           std::span<const double> computed, const Text& remark = {}) {
    add(note, statement, vector_text(printed), vector_text(computed), follows(printed, computed),
        remark);
  }
  void add(std::string_view note, const std::string& statement, const std::string& printed,
           const std::string& computed, bool ok, const Text& remark = {}) {
    ++statements_;
    consistent_ += ok ? 1 : 0;
    result_.log += fmt::format("{}\n  printed   {}\n  computed  {}\n  {}\n", statement, printed,
                               computed, ok ? "follows · 맞음" : "does not follow · 맞지 않음");
    if (!remark.en.empty()) result_.log += fmt::format("  {}\n  {}\n", remark.en, remark.ko);
    result_.log += "\n";
    result_.table.add({std::string(note), statement, printed, computed, ok ? "yes" : "no"});
  }
  int statements() const { return statements_; }
  int consistent() const { return consistent_; }

 private:
  Result& result_;
  int statements_ = 0, consistent_ = 0;
};

BarChart weights_chart(const std::string& title, std::vector<std::string> words,
                       std::vector<double> printed, std::vector<double> computed) {
  return {.title = title,
          .categories = std::move(words),
          .y = {.label = both("weight", "가중치"), .low = 0, .high = 1},
          .bars = {{both("softmax of the scores", "점수의 소프트맥스"), std::move(computed)},
                   {both("printed in the note", "노트에 적힌 값"), std::move(printed)}}};
}

Verdict judge(const Figures& f) {
  if (f["consistent"] >= f["statements"]) return Verdict::holds;
  return f["consistent"] > 0 ? Verdict::partly : Verdict::fails;
}

Result run(const Options& options) {
  ContextBase& context = options.context;
  options.report({"the notes' numbers", 0});
  Result result;
  Sheet sheet(result);

  // The overview: word embedding, position, residual sum.
  const std::vector<double> go = {1.09, 0.67};
  const std::vector<double> position = sinusoidal_rows(context, 3, 2);
  const std::vector<double> at_two = {position[4], position[5]};
  result.log +=
      fmt::format("go = [0, 0, 1, 0] × embedding = {}\nPE(2) = [sin 2, cos 2] = {}\n  sum {}\n\n",
                  vector_text(go), vector_text(at_two),
                  vector_text(std::vector<double>{go[0] + at_two[0], go[1] + at_two[1]}));
  const std::vector<double> input = {1.87, 1.09};
  const double length = std::hypot(input[0] - go[0], input[1] - go[1]);
  sheet.add(notes::kOverview,
            "input [1.87, 1.09] − embedding [1.09, 0.67] is a position [sin p, cos p]", "length 1",
            fmt::format("[0.78, 0.42], length {:.3f}", length), std::abs(length - 1) < 0.01,
            {"A position of two dimensions has length 1; this one has not.",
             "2차원 위치 벡터의 길이는 1이어야 하지만 그렇지 않습니다."});
  const AddNorm added = add_norm(context, {1.87f, 1.09f}, {2.5f, -2.1f});
  sheet.add(notes::kOverview, "residual sum [2.5, −2.1] + [1.87, 1.09]",
            std::vector<double>{4.37, -1.01}, added.sum);
  result.log += fmt::format("LayerNorm of the sum: mean {:.2f}, deviation {:.2f} → {}\n\n",
                            (added.sum[0] + added.sum[1]) / 2,
                            std::abs(added.sum[0] - added.sum[1]) / 2, vector_text(added.out));

  // Attention: the three tables of scores and weights.
  const std::vector<double> self_scores = {10.5, 2.3, 6.1, 4.4, 9.7};
  const std::vector<double> self_printed = {0.32, 0.02, 0.12, 0.06, 0.48};
  const std::vector<double> self = softmax(context, self_scores);
  sheet.add(notes::kAttention, "softmax of the self-attention scores [10.5, 2.3, 6.1, 4.4, 9.7]",
            self_printed, self,
            {"The order flips: 고양이 (10.5) has the highest score, 잔다 (9.7) the highest printed "
             "weight.",
             "순서가 뒤바뀝니다. 점수는 고양이(10.5)가 가장 높은데 적힌 가중치는 잔다(9.7)가 가장 "
             "큽니다."});
  sheet.add(notes::kAttention, "the printed self-attention weights sum to 1",
            std::vector<double>{1.0},
            std::vector<double>{std::accumulate(self_printed.begin(), self_printed.end(), 0.0)});
  const std::vector<double> masked_printed = {0.12, 0.27, 0.41};
  const std::vector<double> masked = softmax(context, std::vector<double>{5.1, 7.8, 11.0});
  sheet.add(notes::kAttention, "softmax of the masked scores [5.1, 7.8, 11.0]", masked_printed,
            masked);
  sheet.add(notes::kAttention, "the printed masked weights sum to 1", std::vector<double>{1.0},
            std::vector<double>{std::accumulate(masked_printed.begin(), masked_printed.end(), 0.0)},
            {"Masked positions get weight 0; the others must still sum to 1.",
             "가려진 위치의 가중치는 0이고 나머지의 합은 여전히 1이어야 합니다."});
  const std::vector<double> cross = softmax(context, std::vector<double>{7.2, 3.4, 6.9, 2.5, 9.1});
  sheet.add(notes::kAttention, "softmax of the cross-attention scores [7.2, 3.4, 6.9, 2.5, 9.1]",
            self_printed, cross,
            {"The weights are copied from self-attention: 는 (3.4) scores above 에서 (2.5), yet "
             "0.02 < 0.06.",
             "셀프 어텐션의 가중치를 그대로 옮겼습니다. 는(3.4)의 점수가 에서(2.5)보다 높은데 "
             "가중치는 0.02 < 0.06입니다."});
  sheet.add(notes::kAttention, "the query that predicts after <BOS> 고양이 는", "Q4", "Q3", false,
            {"Three inputs give three queries; the last of them, Q3 of 는, predicts the next word.",
             "입력이 셋이면 쿼리도 셋입니다. 다음 단어는 마지막 쿼리, 곧 '는'의 Q3이 예측합니다."});

  // The paper review: PE(3, 0) and PE(3, 1).
  const std::vector<double> wide = sinusoidal_rows(context, 4, 512);
  sheet.add(notes::kPositions, "PE(3, 0) = sin(3), PE(3, 1) = cos(3)",
            std::vector<double>{std::sin(3.0), std::cos(3.0)},
            std::vector<double>{wide[3 * 512], wide[3 * 512 + 1]});

  Figures& f = result.figures;
  f.set("statements", sheet.statements());
  f.set("consistent", sheet.consistent());
  f.set("self_cat", self[0]);
  f.set("self_sleeps", self[4]);
  f.set("masked_sum", 0.12 + 0.27 + 0.41);
  f.set("residual_0", added.sum[0]);
  f.set("residual_1", added.sum[1]);
  const std::vector<std::string> words = {"고양이", "는", "침대", "에서", "잔다"};
  result.charts = {weights_chart(both("Self-attention of 고양이", "고양이의 셀프 어텐션"), words,
                                 self_printed, self),
                   weights_chart(both("Masked self-attention", "마스크드 셀프 어텐션"),
                                 {"<BOS>", "고양이", "는"}, masked_printed, masked),
                   weights_chart(both("Cross-attention of <BOS>", "<BOS>의 크로스 어텐션"), words,
                                 self_printed, cross)};
  result.finding = {
      fmt::format("{} of {} numbers follow. The softmax of the scores 10.5 and 9.7 gives {:.3f} "
                  "and {:.3f}, not 0.32 and 0.48; the masked weights sum to 0.80; the "
                  "cross-attention weights are a copy; the residual sum [4.37, −1.01] is right.",
                  sheet.consistent(), sheet.statements(), self[0], self[4]),
      fmt::format("{1}개 가운데 {0}개가 맞습니다. 점수 10.5와 9.7의 소프트맥스는 0.32와 0.48이 "
                  "아니라 {2:.3f}과 {3:.3f}이고, 마스크드 어텐션의 가중치는 합이 0.80이며, 크로스 "
                  "어텐션의 가중치는 복사한 것입니다. 잔차 합 [4.37, −1.01]은 맞습니다.",
                  sheet.consistent(), sheet.statements(), self[0], self[4])};
  result.not_shown = {
      "The notes use their numbers as illustrations; the mechanisms that they explain are not "
      "affected.",
      "노트의 숫자는 설명을 위한 예시이며, 노트가 설명하는 원리 자체에는 영향이 없습니다."};
  return result;
}

}  // namespace

Lab worked_lab() {
  return {.name = "worked",
          .note = notes::kAttention,
          .question = {"Do the notes' own small numbers follow from one another?",
                       "노트에 적힌 작은 숫자들은 서로 맞아떨어질까?"},
          .claim = {"고양이 attends to 잔다 with 0.48 after scores of 10.5 and 9.7; the masked "
                    "weights are 0.12, 0.27 and 0.41; [2.5, −2.1] + [1.87, 1.09] = [4.37, −1.01].",
                    "점수 10.5와 9.7에서 고양이 → 잔다 0.48이 나오고, 마스크드 어텐션의 가중치는 "
                    "0.12, 0.27, 0.41이며, [2.5, −2.1] + [1.87, 1.09] = [4.37, −1.01]이다."},
          .rule = {"It holds if every number follows, partly if some do, and fails if none does.",
                   "모든 숫자가 맞으면 성립, 일부만 맞으면 부분 성립, 하나도 맞지 않으면 성립하지 "
                   "않습니다."},
          .judge = judge,
          .run = run};
}

}  // namespace nunchi::lab
