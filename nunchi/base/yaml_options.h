// Reads and writes options as YAML text.
#pragma once

#include <string>
#include <string_view>

#include "nunchi/base/option_builder.h"

namespace nunchi {

// The map as text that reads back as the same options.
std::string to_yaml(const OptionValue& map);

namespace option_text {

// The tree of one document without anchors, aliases and tags. Calls `fail` for anything else.
OptionValue parse_yaml(std::string_view text, const Fail& fail, const Origin& origin = {});

}  // namespace option_text
}  // namespace nunchi
