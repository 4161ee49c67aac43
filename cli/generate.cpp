#include <fmt/format.h>

#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/device_options.h"
#include "cli/line_command.h"
#include "cli/search_options.h"
#include "nunchi/base/error.h"
#include "nunchi/inference/line_windows.h"
#include "nunchi/inference/pipeline.h"
#include "nunchi/text/one_line.h"

namespace nunchi::cli {
namespace {

struct Arguments {
  std::string folder, prompt, input = "-", output = "-";
  GeneratorOptions options;
  bool json = false;
  ContextOptions device;
  SearchArguments search;
  CLI::Option *given_prompt = nullptr, *given_input = nullptr;
};

void check(const Arguments& arguments) {
  arguments.search.check();
  if (*arguments.given_prompt && *arguments.given_input) {
    throw UsageError("prompts come from --prompt or from --input, not from both.");
  }
}

std::string line_of(const Arguments& arguments, const Prompt& prompt, const Continuation& found) {
  if (!arguments.json) return in_one_line(prompt.text + found.text) + "\n";
  const nlohmann::ordered_json json = {{"prompt", prompt.text},
                                       {"text", found.text},
                                       {"tokens", found.tokens.size()},
                                       {"log_probability", found.log_probability}};
  return json_line(json) + "\n";
}

// One prompt: the text as it comes.
void run_prompt(const Arguments& arguments, Generator& generator, Output& out) {
  const Prompt prompt{.text = arguments.prompt};
  if (arguments.json) return out.add(line_of(arguments, prompt, generator.generate(prompt)));
  const auto show = [&](std::string_view part) {
    out.add(part);
    out.flush();
    return out.is_open();
  };
  show(prompt.text);
  generator.generate(prompt, show);
  out.add("\n");
}

// A prompt a line: a line for a line.
void run_lines(const Arguments& arguments, Generator& generator, Output& out) {
  const std::unique_ptr<LineSource> input = open_input(arguments.input);
  const LineWindowOptions windows{.lines =
                                      static_cast<std::size_t>(arguments.options.batch_prompts)};
  const auto answer = [&](std::span<const SourceLine> lines) {
    std::vector<Prompt> prompts;
    for (const SourceLine& line : lines) {
      prompts.push_back({.text = line.text, .number = line.number, .cut = line.cut});
    }
    const std::vector<Continuation> found = generator.generate(prompts);
    for (std::size_t i = 0; i < found.size(); ++i) {
      out.add(line_of(arguments, prompts[i], found[i]));
    }
    return out.is_open();
  };
  read_windows(*input, windows, answer, [&] { out.flush(); });
}

void report(const PromptCounts& counts) {
  const auto say = [](std::int64_t count, const char* what) {
    if (count > 0)
      fmt::print(stderr, "nunchi: {} {} {}\n", count, count == 1 ? "prompt" : "prompts", what);
  };
  say(counts.repaired, "with invalid UTF-8: U+FFFD stands for the bytes");
  say(counts.lost, "too long for a line: only the beginning was read");
  say(counts.cut, "longer than the model looks back: only the end was read");
}

void run(const Arguments& arguments) {
  // A reader that goes away is no error: writing tells.
  std::signal(SIGPIPE, SIG_IGN);
  check(arguments);
  // Before the work: what cannot be written is known at once.
  Output out(arguments.output);
  const Pipeline pipeline =
      Pipeline::open(arguments.folder, {.device = arguments.device, .check = as_language_model});
  GeneratorOptions options = arguments.options;
  options.search = arguments.search.with(pipeline.search());
  Generator generator = pipeline.generator(options);
  if (*arguments.given_prompt) {
    run_prompt(arguments, generator, out);
  } else {
    run_lines(arguments, generator, out);
  }
  out.finish();
  report(generator.counts());
}

}  // namespace

void add_generate(CLI::App& program) {
  CLI::App* generate = program.add_subcommand("generate", "Go on with texts");
  auto a = std::make_shared<Arguments>();
  generate->add_option("MODEL", a->folder, "Model folder")->required();
  a->given_prompt = generate->add_option("--prompt", a->prompt,
                                         "What the text begins with; it is shown as it comes");
  a->given_input = generate->add_option("--input", a->input,
                                        "Prompts, one a line, in place of --prompt; - is stdin");
  generate->add_option("--output", a->output, "Where it goes; - is stdout");
  a->search.max_length = generate
                             ->add_option("--max-tokens", a->search.search.max_length,
                                          "Tokens after the prompt, at most")
                             ->check(CLI::Range(1, 1 << 20));
  generate
      ->add_option("--stop", a->options.stops, "End the text before this; may come several times")
      ->allow_extra_args(false);
  a->search.add_to(*generate);
  generate->add_option("--batch-prompts", a->options.batch_prompts, "Prompts at once")
      ->check(CLI::Range(1, 1 << 16));
  generate->add_flag("--json", a->json, "One JSON object a prompt");
  add_device_options(*generate, a->device);
  generate->callback([=] { run(*a); });
}

}  // namespace nunchi::cli
