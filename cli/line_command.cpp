#include "cli/line_command.h"

#include <fmt/format.h>

#include <csignal>

#include "nunchi/inference/line_windows.h"

namespace nunchi::cli {

void LineCommand::add_to(CLI::App& command) {
  command.add_option("MODEL", folder, "Model folder")->required();
  command.add_option("--input", input, "Text to read, line by line; - is stdin");
  command.add_option("--output", output, "Where the answers go; - is stdout");
  command
      .add_option("--max-length", reader.max_length,
                  "Tokens of a line, <s> and </s> included; more are cut")
      ->check(CLI::Range(3, 1 << 20))
      ->capture_default_str();
  command.add_option("--batch-tokens", reader.batch_tokens, "Tokens at once")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  command.add_flag("--json", json, "One JSON object a line");
  add_device_options(command, device);
}

void LineCommand::run(const AbilityCheck& check,
                      const std::function<Answering(const Pipeline&)>& make) const {
  // A reader that goes away is no error: writing tells.
  std::signal(SIGPIPE, SIG_IGN);
  // Before the work: what cannot be written is known at once.
  Output out(output);
  const Pipeline pipeline = Pipeline::open(folder, {.device = device, .check = check});
  const Answering answering = make(pipeline);
  const std::unique_ptr<LineSource> lines = open_input(input);
  const auto answer = [&](std::span<const SourceLine> window) {
    for (const std::string& line : answering.answers(window)) out.add(line + "\n");
    return out.is_open();
  };
  read_windows(*lines, {}, answer, [&] { out.flush(); });
  out.finish();
  answering.at_end();
}

void report(const LineCounts& counts, const char* limit) {
  const auto say = [](std::int64_t count, const std::string& what) {
    if (count > 0)
      fmt::print(stderr, "nunchi: {} {} {}\n", count, count == 1 ? "line" : "lines", what);
  };
  say(counts.empty, "without words stayed empty");
  say(counts.repaired, "with invalid UTF-8: U+FFFD stands for the bytes");
  say(counts.cut, fmt::format("too long and cut (see {})", limit));
}

}  // namespace nunchi::cli
