// The reference for a search: the next token's logits, computed from the whole prefix without
// cached decoder states.
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
struct SearchTestModel {
  template <class Config>
  explicit SearchTestModel(const Config& config, DType dtype = DType::f32, int threads = 2)
      : context({.threads = threads}), model(std::make_unique<Model>(config)) {
    model->parameters().allocate(context, {.dtype = dtype});
    model->parameters().initialize(11);
  }

  TokenBatch batch(const std::vector<Tokens>& sources) {
    return make_token_batch(context, sources, model->input_sizes().source_vocabulary);
  }

  // The logits of the token after `prefix` (without <s>), computed from the whole prefix.
  std::vector<double> logits_after(const Tokens& source, const Tokens& prefix) {
    Tokens input{kBegin};
    input.insert(input.end(), prefix.begin(), prefix.end());
    const TokenBatch sources = batch({source});
    const TokenBatch targets =
        make_token_batch(context, std::vector<Tokens>{input}, model->target_vocabulary());
    const Variable hidden = model->decode(targets, model->encode(sources));
    const Tensor logits = model->logits(hidden, targets.rows).value();
    const std::int64_t last_row = targets.rows.rows - 1;
    return to_host_f64(logits.rows(last_row, 1));
  }

  std::vector<double> log_probs_after(const Tokens& source, const Tokens& prefix) {
    std::vector<double> log_probs = logits_after(source, prefix);
    double sum = 0;
    for (const double logit : log_probs) sum += std::exp(logit);
    for (double& value : log_probs) value -= std::log(sum);
    log_probs[kBegin] = -INFINITY;
    return log_probs;
  }

  CpuContext context;
  std::unique_ptr<Model> model;
};

// Every sentence of at most `max_length` tokens with its score: the log-probability divided by the
// length to the power of `length_penalty`.
template <class Model>
std::map<Tokens, double> all_sentences(SearchTestModel<Model>& s, const Tokens& source,
                                       std::size_t max_length, double length_penalty) {
  std::map<Tokens, double> scores;
  const std::function<void(const Tokens&, double)> extend = [&](const Tokens& target, double sum) {
    const auto log_probs = s.log_probs_after(source, target);
    const double length = static_cast<double>(target.size() + 1);
    scores[target] = (sum + log_probs[kEnd]) / std::pow(length, length_penalty);
    for (std::int32_t token = 0; token < static_cast<std::int32_t>(log_probs.size()); ++token) {
      if (token == kBegin || token == kEnd) continue;
      Tokens longer = target;
      longer.push_back(token);
      const double score = sum + log_probs[static_cast<std::size_t>(token)];
      if (longer.size() == max_length) {
        scores[longer] = score / std::pow(length, length_penalty);
      } else {
        extend(longer, score);
      }
    }
  };
  extend({}, 0);
  return scores;
}

}  // namespace nunchi::testing
