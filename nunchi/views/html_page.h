// The page that shows inspections: one HTML file that needs neither a network nor a server. It is
// joined from web/ when the program is built (web/README.md) and compiled in.
#pragma once

#include <string>
#include <string_view>

namespace nunchi {

// The page with an empty payload.
std::string_view empty_page();

// The page with this payload, a JSON text. `<`, `>`, `&`, line separators and characters that
// change the direction of text are written as \u escapes, so the payload cannot end its script
// element and the file reads as it is stored. They occur only in strings of a valid JSON text,
// where an escape has the same meaning.
std::string html_page(std::string_view payload_json);

}  // namespace nunchi
