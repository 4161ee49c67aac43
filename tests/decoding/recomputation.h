// The reference for a search: the model's scores, recomputed from the whole target.
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

// A small encoder-decoder with random weights that generates </s> now and then.
template <class Model>
struct SearchedModel {
  template <class Config>
  explicit SearchedModel(const Config& config, DType dtype = DType::f32, int threads = 2)
      : context({.threads = threads}), model(std::make_unique<Model>(config)) {
    model->parameters().allocate(context, {.dtype = dtype});
    model->parameters().initialize(11);
  }

  TokenBatch batch(const std::vector<Tokens>& sources) {
    return make_token_batch(context, sources, model->input_sizes().source_vocabulary);
  }

  // The model's scores of the token after `target` (without <s>), recomputed from the whole target.
  std::vector<double> scores_after(const Tokens& source, const Tokens& target) {
    Tokens input{kBegin};
    input.insert(input.end(), target.begin(), target.end());
    const TokenBatch sources = batch({source});
    const TokenBatch targets =
        make_token_batch(context, std::vector<Tokens>{input}, model->target_vocabulary());
    const Variable hidden = model->decode(targets, model->encode(sources));
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

// Every sentence of at most `max_length` tokens with its normalised score.
template <class Model>
std::map<Tokens, double> all_sentences(SearchedModel<Model>& s, const Tokens& source,
                                       std::size_t max_length, double normalize) {
  std::map<Tokens, double> scores;
  const std::function<void(const Tokens&, double)> extend = [&](const Tokens& target, double sum) {
    const auto log_probs = s.log_probs_after(source, target);
    const double length = static_cast<double>(target.size() + 1);
    scores[target] = (sum + log_probs[kEnd]) / std::pow(length, normalize);
    for (std::int32_t token = 0; token < static_cast<std::int32_t>(log_probs.size()); ++token) {
      if (token == kBegin || token == kEnd) continue;
      Tokens longer = target;
      longer.push_back(token);
      const double score = sum + log_probs[static_cast<std::size_t>(token)];
      if (longer.size() == max_length) {
        scores[longer] = score / std::pow(length, normalize);
      } else {
        extend(longer, score);
      }
    }
  };
  extend({}, 0);
  return scores;
}

}  // namespace nunchi::testing
