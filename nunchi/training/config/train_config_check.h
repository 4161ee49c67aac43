// What does not fit together in a training config, and what has no effect.
#pragma once

#include "nunchi/training/config/train_config.h"

namespace nunchi {

// Both throw Error, or UsageError for what was set, with the keys to blame (OptionReader::fail).
void check_train_config(const TrainConfig& config, const OptionReader& in);

// A key whose value nobody looks at is a mistake of whoever wrote it. The value that it would have
// anyway may stand there, as it does in a config that was written out: `defaults` has those.
void check_used(const TrainConfig& config, const TrainConfig& defaults, const OptionReader& in);

}  // namespace nunchi
