// Rejects options of a training config that do not fit together.
#pragma once

#include "nunchi/training/config/train_config.h"

namespace nunchi {

// Throws UsageError if --set gave one of the keys at fault, otherwise Error. The message names the
// keys (OptionReader::fail).
void check_train_config(const TrainConfig& config, const OptionReader& in);

}  // namespace nunchi
