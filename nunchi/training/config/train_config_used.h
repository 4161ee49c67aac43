// Options of a training config that have no effect beside the others.
#pragma once

#include "nunchi/training/config/train_config.h"

namespace nunchi {

// An option without effect is a mistake: throws Error, or UsageError for an assignment. The default
// value, which `defaults` has, is allowed: written configs have it.
void check_used(const TrainConfig& config, const TrainConfig& defaults, const OptionReader& in);

}  // namespace nunchi
