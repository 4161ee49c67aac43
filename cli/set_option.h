// --set, for the commands that take a training config.
#pragma once

#include <string>
#include <vector>

#include "cli/option_group.h"

namespace nunchi::cli {

inline void add_set_option(OptionGroup& group, std::vector<std::string>& assignments) {
  group
      .add("--set", assignments, text("KEY=VALUE", "e.g. training.max_steps=1000"),
           "Replace a value of CONFIG; may be given several times")
      ->allow_extra_args(false);
}

}  // namespace nunchi::cli
