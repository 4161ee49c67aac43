// What commands have in common that read texts and answer each line with a line.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cli/device_options.h"
#include "cli/input_output.h"
#include "nunchi/inference/pipeline.h"

namespace nunchi::cli {

struct LineCommand {
  std::string folder, input = "-", output = "-";
  ReaderOptions reader;
  ContextOptions device;
  bool json = false;

  // MODEL, --input, --output, --max-length, --batch-tokens, --json and where to compute.
  void add_to(CLI::App& command);

  struct Answering {
    // Of each line its answer, without the line's end.
    std::function<std::vector<std::string>(std::span<const SourceLine>)> answers;
    std::function<void()> at_end;  // when all have been given
  };
  // Opens the model with `check` (see PipelineOptions), makes what answers lines, and gives every
  // line its answer.
  void run(const AbilityCheck& check, const std::function<Answering(const Pipeline&)>& make) const;
};

// One JSON object as a line. What is not UTF-8 in it becomes U+FFFD.
std::string json_line(const auto& json) {
  return json.dump(-1, ' ', false, std::remove_cvref_t<decltype(json)>::error_handler_t::replace);
}

// On stderr what happened to lines that were not as they should be; `limit` is the option that cut
// them.
void report(const LineCounts& counts, const char* limit);

}  // namespace nunchi::cli
