// Rejects options of a training config that do not fit together.
#pragma once

#include "nunchi/training/config/train_config.h"

namespace nunchi {

// Throws Error, or UsageError for an assignment, naming the keys at fault (OptionReader::fail).
void check_train_config(const TrainConfig& config, const OptionReader& in);

}  // namespace nunchi
