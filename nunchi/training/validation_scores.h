// The result of a validation, what is logged and said about it, and the list of the best.
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
  std::optional<double> bleu, chrf;  // if the config's metric asks for translations
  std::optional<double> accuracy;    // 0 to 1, of objectives that count it
};

// The score that the metric names. It has to be there.
double score_of(const ValidationScores& scores, ValidationMetric metric);

// For the log, with their names there.
std::vector<NamedValue> log_values(const ValidationScores& scores);

// "validation loss 2.1034, BLEU 31.20"
std::string to_text(const ValidationScores& scores);

// Adds the score of the state's step: `state` remembers the best `keep_best` steps and how many
// validations have passed since the last improvement. Of equal scores the earlier one is better; a
// score that is not finite never is. Returns whether it is the best so far.
bool add_score(TrainerState& state, double score, ValidationMetric metric, std::size_t keep_best);

}  // namespace nunchi
