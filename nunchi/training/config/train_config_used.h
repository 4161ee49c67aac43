// Rejects options of a training config that have no effect because of other options.
#pragma once

#include "nunchi/training/config/train_config.h"

namespace nunchi {

// Throws Error, or UsageError for an assignment, for an option that has no effect but differs from
// its value in `defaults`. Default values are allowed because to_yaml() writes every key.
void check_options_have_effect(const TrainConfig& config, const TrainConfig& defaults,
                               const OptionReader& in);

}  // namespace nunchi
