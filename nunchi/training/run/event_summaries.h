// Summaries of TensorBoard's plugins, encoded for an event file (see event_file.h): tables of text,
// and the records from which its page HPARAMS compares runs.
//
// A value of a summary has a tag (field 1), a tensor (8) and metadata (9), which name the plugin.
// Strings are a tensor of type 7; the plugin hparams has its own message in the metadata.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace nunchi {

// A table of texts under a tag; each row has as many cells as the first. Markdown in cells is
// rendered.
std::string text_table_summary(const std::string& tag,
                               std::span<const std::vector<std::string>> rows);

// The start of a run with these options. A text that is a number, true or false is stored as such.
std::string session_start_summary(std::span<const std::pair<std::string, std::string>> options);

// The end of a run that has finished.
std::string session_end_summary();

}  // namespace nunchi
