// The scores of a validation, how they are logged and displayed, and the list of the best ones.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nunchi/training/config/train_config.h"
#include "nunchi/training/run/checkpoint.h"
#include "nunchi/training/run/event_file.h"

namespace nunchi {

struct ValidationScores {
  double loss = 0;                   // per target token, without label smoothing
  std::optional<double> bleu, chrf;  // set if the config's metric is bleu or chrf
  std::optional<double> accuracy;    // 0 to 1; set by objectives that report it
};

// The score of the metric, which must be set.
double score_of(const ValidationScores& scores, ValidationMetric metric);

// Whether score `a` is better than score `b`: a lower loss, a higher value of other metrics.
bool is_better(ValidationMetric metric, double a, double b);

// For messages: "BLEU" and "31.20", "loss" and "2.1034", "accuracy" and "97.50 %".
std::string display_name(ValidationMetric metric);
std::string score_text(ValidationMetric metric, double score);

// The scores with their names in the log, and the perplexity.
std::vector<NamedValue> log_values(const ValidationScores& scores);

// "validation loss 2.1034, BLEU 31.20"
std::string to_text(const ValidationScores& scores);

// Adds the score of the current step to `state`, which keeps the `keep_best` best steps and counts
// the validations since the last improvement. Of equal scores the earlier one is better; a score
// that is not finite is never kept. Returns whether the score is the best so far.
bool add_score(TrainerState& state, double score, ValidationMetric metric, std::size_t keep_best);

}  // namespace nunchi
