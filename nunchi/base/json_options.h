// Reads and writes options as JSON text.
#pragma once

#include <string>
#include <string_view>

#include "nunchi/base/option_builder.h"

namespace nunchi {

// The map as text that reads back as the same options; plain scalars become texts.
std::string to_json(const OptionValue& map);

namespace option_text {

// Calls `fail` if the text is not JSON.
OptionValue parse_json(std::string_view text, const Fail& fail);

// The text as a JSON string, which is valid YAML too. Bytes that are not UTF-8 become U+FFFD.
std::string quoted(const std::string& text);

}  // namespace option_text
}  // namespace nunchi
