#include "cli/line_command.h"

#include <fmt/format.h>

#include <csignal>

#include "cli/picture.h"
#include "nunchi/inference/line_windows.h"

namespace nunchi::cli {

void LineCommand::add_to(CLI::App& command) {
  add_model(command, folder);
  add_input(command, input, "Lines to read");
  add_output(command, output, "Where to write the results");
  add_json(command, json, "Print one JSON object for each line");
  OptionGroup batches(command, kBatches);
  batches.add("--max-length", reader.max_length, whole_number(3, 1 << 20),
              "Maximum tokens of a line, with <s> and </s>; longer lines are cut");
  batches.add("--batch-tokens", reader.batch_tokens, whole_number(1, 1 << 24),
              "Approximate number of tokens per batch");
  add_device_options(command, device);
}

void LineCommand::run(const AbilityCheck& check,
                      const std::function<Handler(const Pipeline&)>& make) const {
  // A closed pipe is not an error: writing to it returns EPIPE.
  std::signal(SIGPIPE, SIG_IGN);
  // Opened first, so that an output that cannot be written is reported immediately.
  Output out(output);
  const Pipeline pipeline = Pipeline::open(folder, {.device = device, .check = check});
  const Handler handler = make(pipeline);
  const std::unique_ptr<LineSource> lines = open_input(input);
  const auto answer = [&](std::span<const SourceLine> window) {
    const std::vector<std::string> answers = handler.answers(window);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      out.add(answers[i] + "\n");
      if (!handler.picture) continue;
      out.flush();
      print_picture(handler.picture(window, i));
    }
    return out.is_open();
  };
  read_windows(*lines, {}, answer, [&] { out.flush(); });
  out.finish();
  handler.at_end();
}

void add_alignment(CLI::App& command, std::string& kind) {
  OptionGroup(command, kOutputFormat)
      .add("--alignment", kind, one_of({"hard", "soft"}, "KIND"),
           "Add the source word of each target word (hard: 0-0 1-2) or the weights of all source "
           "words (soft)")
      ->expected(0, 1)
      ->default_str("hard");
}

Alignment alignment_kind(const std::string& kind) {
  return kind == "hard" ? Alignment::hard : kind == "soft" ? Alignment::soft : Alignment::none;
}

void report_unknown(std::int64_t count, const std::string& unit) {
  if (count == 0) return;
  fmt::print(stderr,
             "nunchi: {} {}{} with at least {:.0f}% unknown tokens: the model was not trained on "
             "such text\n",
             count, unit, count == 1 ? "" : "s", 100 * kUnknownLimit);
}

void report(const LineCounts& counts, const char* limit) {
  const auto print_count = [](std::int64_t count, const std::string& problem) {
    if (count > 0)
      fmt::print(stderr, "nunchi: {} {} {}\n", count, count == 1 ? "line" : "lines", problem);
  };
  print_count(counts.empty, "without words: empty output");
  print_count(counts.repaired, "with invalid UTF-8: replaced by U+FFFD");
  print_count(counts.cut, fmt::format("too long: cut (see {})", limit));
  print_count(counts.markup, "with <term> markup that cannot be read: translated as text");
  print_count(counts.terms,
              fmt::format("with terms that were left out: a line has at most {} terms of {} tokens "
                          "in all, which the target tokenizer can spell",
                          kMaxRequiredPhrases, kMaxRequiredTokens));
  report_unknown(counts.unknown, "line");
  print_count(counts.unlikely,
              "with a translation far less likely than those of the validation data: the model may "
              "not have been trained on such text");
}

}  // namespace nunchi::cli
