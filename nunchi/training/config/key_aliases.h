// What other programs call the keys of a training config, for the suggestions of error messages.
#pragma once

#include <span>

#include "nunchi/base/key_hints.h"

namespace nunchi {

std::span<const KeyAlias> train_config_aliases();

}  // namespace nunchi
