// Commands that answer each line of input with a line of output: fill, embed, classify.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cli/device_options.h"
#include "cli/input_output.h"
#include "nunchi/inference/pipeline.h"
#include "nunchi/inference/translation_format.h"

namespace nunchi::cli {

struct LineCommand {
  std::string folder, input = "-", output = "-";
  ReaderOptions reader;
  ContextOptions device;
  bool json = false;

  // MODEL, --input, --output, --max-length, --batch-tokens, --json and the device options.
  void add_to(CLI::App& command);

  struct Handler {
    // One answer for each line, without a line break.
    std::function<std::vector<std::string>(std::span<const SourceLine>)> answers;
    std::function<void()> at_end;  // called after the last answer
    // The picture of a line that was answered, drawn after its answer; may be empty.
    std::function<std::string(std::span<const SourceLine>, std::size_t line)> picture = {};
  };
  // Opens the model with `check` (see PipelineOptions) and prints the answer to every line.
  void run(const AbilityCheck& check, const std::function<Handler(const Pipeline&)>& make) const;
};

// A JSON object in one line. Invalid UTF-8 becomes U+FFFD.
std::string json_line(const auto& json) {
  return json.dump(-1, ' ', false, std::remove_cvref_t<decltype(json)>::error_handler_t::replace);
}

// --alignment [hard|soft] of the commands that translate or score.
void add_alignment(CLI::App& command, std::string& kind);
// `kind` is "hard", "soft" or empty.
Alignment alignment_kind(const std::string& kind);

// Prints on stderr how many lines, or pairs of lines, have many unknown tokens (kUnknownLimit).
void report_unknown(std::int64_t count, const std::string& unit);

// Prints on stderr how many lines were empty, repaired, cut or mostly unknown. `limit` is the
// option that sets the maximum length.
void report(const LineCounts& counts, const char* limit);

}  // namespace nunchi::cli
