// Options as JSON text, both ways.
#pragma once

#include <string>
#include <string_view>

#include "nunchi/base/option_builder.h"

namespace nunchi {

// The map as text that reads back as the same options; plain scalars become texts.
std::string to_json(const OptionValue& map);

namespace option_text {

// Calls `fail` for what is not JSON.
OptionValue parse_json(std::string_view text, const Fail& fail);

// The text in JSON's quotes, which are valid in YAML too. Bytes that are not UTF-8 become U+FFFD;
// the parsers accept none.
std::string quoted(const std::string& text);

}  // namespace option_text
}  // namespace nunchi
