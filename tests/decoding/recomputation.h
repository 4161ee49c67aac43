// What a search is compared with: the model's scores, computed anew from the whole target.
#pragma once

#include <cmath>
#include <functional>
#include <map>

#include "nunchi/models/sequence_model.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {

inline constexpr std::int32_t kBegin = 1, kEnd = 2;

inline std::vector<Tokens> with_end(std::vector<Tokens> sentences) {
  for (Tokens& sentence : sentences) sentence.push_back(kEnd);
  return sentences;
}

// An encoder-decoder whose sentences end now and then.
template <class Model>
struct SearchedModel {
  template <class Config>
  explicit SearchedModel(const Config& config, DType dtype = DType::f32, int threads = 2)
      : context({.threads = threads}), model(std::make_unique<Model>(config)) {
    model->parameters().allocate(context, {.dtype = dtype});
    model->parameters().initialize(11);
  }

  TokenBatch batch(const std::vector<Tokens>& sources) {
    return make_token_batch(context, sources, model->config().source_vocabulary);
  }

  // The model's scores of what follows `target` (without <s>), by recomputing all of it.
  std::vector<double> scores_after(const Tokens& source, const Tokens& target) {
    Tokens input{kBegin};
    input.insert(input.end(), target.begin(), target.end());
    const TokenBatch sources = batch({source});
    const TokenBatch targets =
        make_token_batch(context, std::vector<Tokens>{input}, model->config().target_vocabulary);
    const Variable hidden = model->decode(targets, model->encode(sources), sources.rows);
    const Tensor logits = model->logits(hidden, targets.rows).value();
    return to_host_f64(logits.rows(targets.rows.rows - 1, 1));
  }

  std::vector<double> log_probs_after(const Tokens& source, const Tokens& target) {
    std::vector<double> scores = scores_after(source, target);
    double sum = 0;
    for (const double score : scores) sum += std::exp(score);
    for (double& score : scores) score -= std::log(sum);
    scores[kBegin] = -INFINITY;
    return scores;
  }

  CpuContext context;
  std::unique_ptr<Model> model;
};

// Steps through random tokens with hypotheses that are copied, dropped and put into another order.
// The model computes in f64.
template <class Model>
void expect_steps_equal_recomputation(SearchedModel<Model>&& s) {
  const std::vector<Tokens> sources = with_end(sentences_of({5, 1, 9}, 37, 3));
  const TokenBatch source = s.batch(sources);
  const auto state = s.model->start(source);
  std::vector<std::int32_t> sentences{0, 1, 2};
  std::vector<Tokens> hypotheses(3);  // <s> left out
  const auto tensor = [&](const std::vector<std::int32_t>& values) {
    return from_host(s.context, values, {static_cast<std::int64_t>(values.size())});
  };
  Tensor parents;
  std::vector<std::int32_t> newest(3, kBegin);
  for (int step = 0; step < 40; ++step) {
    const std::int64_t rows = static_cast<std::int64_t>(newest.size());
    std::vector<std::int32_t> ids = newest;
    ids.resize(static_cast<std::size_t>(nn::decode_capacity(rows)), 0);
    const Tensor hidden = s.model->step(*state, {.hypotheses = rows,
                                                 .tokens = rows,
                                                 .ids = tensor(ids),
                                                 .parents = parents,
                                                 .sentences = tensor(sentences)});
    const Tensor scores = s.model->next_scores(hidden);
    for (std::size_t r = 0; r < hypotheses.size(); ++r) {
      const auto expected =
          s.scores_after(sources[static_cast<std::size_t>(sentences[r])], hypotheses[r]);
      const auto actual = to_host_f64(scores.rows(static_cast<std::int64_t>(r), 1));
      ASSERT_LT(largest_difference(actual, expected), 1e-12) << "step " << step << ", row " << r;
    }
    // Now between one and seven hypotheses, each from any parent.
    const auto draws = random_values<double>(16, 100 + static_cast<std::uint64_t>(step));
    const auto draw = [&](std::size_t i, std::size_t below) {
      return static_cast<std::size_t>((draws[i] + 1) / 2 * static_cast<double>(below));
    };
    std::vector<std::int32_t> from, next_sentences;
    std::vector<Tokens> next;
    newest.clear();
    for (std::size_t i = 0, count = 1 + draw(15, 7); i < count; ++i) {
      const std::size_t parent = draw(i, hypotheses.size());
      from.push_back(static_cast<std::int32_t>(parent));
      next_sentences.push_back(sentences[parent]);
      next.push_back(hypotheses[parent]);
      newest.push_back(static_cast<std::int32_t>(draw(i + 7, 37)));
      next.back().push_back(newest.back());
    }
    parents = tensor(from);
    sentences = next_sentences;
    hypotheses = next;
  }
}

// A step with several tokens of each hypothesis; the model computes in f64.
template <class Model>
void expect_several_tokens_at_once(SearchedModel<Model>&& s) {
  const std::vector<Tokens> sources = with_end(sentences_of({4, 7}, 37, 5));
  const std::vector<Tokens> prefixes{{5, 6, 7, 8}, {9}};
  const TokenBatch source = s.batch(sources);
  const auto state = s.model->start(source);
  const auto tensor = [&](const std::vector<std::int32_t>& values) {
    return from_host(s.context, values, {static_cast<std::int64_t>(values.size())});
  };
  const Tensor hidden = s.model->step(*state, {.hypotheses = 2,
                                               .tokens = 7,
                                               .most = 5,
                                               .ids = tensor({kBegin, 5, 6, 7, 8, kBegin, 9}),
                                               .sentences = tensor({0, 1}),
                                               .offsets = tensor({0, 5, 7})});
  const Tensor scores = s.model->next_scores(hidden);
  for (std::size_t r = 0; r < 2; ++r) {
    EXPECT_LT(largest_difference(to_host_f64(scores.rows(static_cast<std::int64_t>(r), 1)),
                                 s.scores_after(sources[r], prefixes[r])),
              1e-12);
  }
}

// Every sentence of at most `longest` tokens with its normalised score.
template <class Model>
std::map<Tokens, double> all_sentences(SearchedModel<Model>& s, const Tokens& source,
                                       std::size_t longest, double normalize) {
  std::map<Tokens, double> all;
  const std::function<void(const Tokens&, double)> go_on = [&](const Tokens& target, double sum) {
    const auto log_probs = s.log_probs_after(source, target);
    const double length = static_cast<double>(target.size() + 1);
    all[target] = (sum + log_probs[kEnd]) / std::pow(length, normalize);
    for (std::int32_t token = 0; token < static_cast<std::int32_t>(log_probs.size()); ++token) {
      if (token == kBegin || token == kEnd) continue;
      Tokens more = target;
      more.push_back(token);
      const double score = sum + log_probs[static_cast<std::size_t>(token)];
      if (more.size() == longest) {
        all[more] = score / std::pow(length, normalize);
      } else {
        go_on(more, score);
      }
    }
  };
  go_on({}, 0);
  return all;
}

}  // namespace nunchi::testing
