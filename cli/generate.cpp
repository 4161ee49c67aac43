#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands.h"
#include "cli/device_options.h"
#include "cli/line_command.h"
#include "cli/option_group.h"
#include "cli/picture.h"
#include "cli/search_options.h"
#include "cli/working_line.h"
#include "nunchi/base/error.h"
#include "nunchi/inference/line_windows.h"
#include "nunchi/inference/pipeline.h"
#include "nunchi/text/one_line.h"
#include "nunchi/views/prediction_picture.h"

namespace nunchi::cli {
namespace {

struct Arguments {
  std::string folder, prompt, input = "-", output = "-";
  GeneratorOptions options;
  bool json = false, ignore_end = false, picture = false;
  ContextOptions device;
  SearchArguments search;
  CLI::Option *prompt_option = nullptr, *input_option = nullptr;
};

void check(const Arguments& arguments) {
  arguments.search.check();
  if (*arguments.prompt_option && *arguments.input_option) {
    throw UsageError("--prompt and --input exclude each other.");
  }
}

std::string line_of(const Arguments& arguments, const Prompt& prompt, const Continuation& found) {
  if (!arguments.json) return in_one_line(prompt.text + found.text) + "\n";
  const nlohmann::ordered_json json = {{"prompt", prompt.text},
                                       {"text", found.text},
                                       {"tokens", found.tokens.size()},
                                       {"ended", found.ended},
                                       {"log_probability", found.log_probability}};
  return json_line(json) + "\n";
}

// Draws continuations: where each new token looked, and what else was likely.
class Pictures {
 public:
  Pictures(const Arguments& arguments, const Pipeline& pipeline) {
    if (!arguments.picture) return;
    inspector_.emplace(pipeline.inspector(
        {.max_length = InspectorOptions::kLongest, .best = 5, .taps = false, .gradients = false}));
  }

  void print(const Prompt& prompt, const Continuation& found, Output& out) const {
    // Without a prompt there is no text to look at before the first token.
    const bool has_prompt = prompt.text.find_first_not_of(" \t\r\n") != std::string::npos;
    if (!inspector_ || !has_prompt || found.tokens.empty() || found.text.empty()) return;
    out.flush();
    const Inspection inspection = inspector_->inspect({.text = prompt.text, .target = found.text});
    if (inspection.target_cut) {
      fmt::print(stderr, "nunchi: no picture: the text is longer than {} tokens\n",
                 InspectorOptions::kLongest);
      return;
    }
    print_picture(prediction_picture(inspection, found.tokens.size(), picture_options()));
  }

 private:
  std::optional<Inspector> inspector_;
};

// One prompt: prints the text as it is generated.
void run_prompt(const Arguments& arguments, Generator& generator, const WorkProgress& progress,
                const Pictures& pictures, Output& out) {
  const Prompt prompt{.text = arguments.prompt};
  // The text itself shows the progress on a terminal.
  std::optional<WorkingLine> working;
  if (arguments.json || ::isatty(STDOUT_FILENO) == 0) working.emplace("texts done", progress);
  if (arguments.json) {
    const Continuation found = generator.generate(prompt);
    out.add(line_of(arguments, prompt, found));
    return pictures.print(prompt, found, out);
  }
  const auto show = [&](std::string_view part) {
    out.add(part);
    out.flush();
    return out.is_open();
  };
  show(prompt.text);
  const Continuation found = generator.generate(prompt, show);
  out.add("\n");
  pictures.print(prompt, found, out);
}

// One prompt on each line: prints one line for each.
void run_lines(const Arguments& arguments, Generator& generator, const WorkProgress& progress,
               const Pictures& pictures, Output& out) {
  WorkingLine working("texts done", progress);
  const std::unique_ptr<LineSource> input = working.watched(open_input(arguments.input));
  const LineWindowOptions windows{.lines =
                                      static_cast<std::size_t>(arguments.options.batch_prompts)};
  const auto answer = [&](std::span<const SourceLine> lines) {
    std::vector<Prompt> prompts;
    for (const SourceLine& line : lines) {
      prompts.push_back({.text = line.text, .number = line.number, .cut = line.cut});
    }
    const std::vector<Continuation> found = generator.generate(prompts);
    working.add(std::ssize(found));
    working.hide_while([&] {
      for (std::size_t i = 0; i < found.size(); ++i) {
        out.add(line_of(arguments, prompts[i], found[i]));
        pictures.print(prompts[i], found[i], out);
      }
    });
    return out.is_open();
  };
  read_windows(*input, windows, answer, [&] { working.hide_while([&] { out.flush(); }); });
}

void report(const PromptCounts& counts) {
  const auto print_count = [](std::int64_t count, const char* problem) {
    if (count > 0)
      fmt::print(stderr, "nunchi: {} {} {}\n", count, count == 1 ? "prompt" : "prompts", problem);
  };
  print_count(counts.repaired, "with invalid UTF-8: replaced by U+FFFD");
  print_count(counts.lost, "too long: only the beginning of the line was read");
  print_count(counts.cut, "longer than the model's context: only the end was read");
}

void run(const Arguments& arguments) {
  // A closed pipe is not an error: writing to it returns EPIPE.
  std::signal(SIGPIPE, SIG_IGN);
  // Opened first, so that an output that cannot be written is reported immediately.
  Output out(arguments.output);
  const Pipeline pipeline =
      Pipeline::open(arguments.folder, {.device = arguments.device, .check = as_language_model});
  GeneratorOptions options = arguments.options;
  options.search = arguments.search.merged_with(pipeline.search());
  options.stop_at_end = !arguments.ignore_end;
  Generator generator = pipeline.generator(options);
  const auto& progress = pipeline.context().cache<WorkProgress>();
  const Pictures pictures(arguments, pipeline);
  if (*arguments.prompt_option) {
    run_prompt(arguments, generator, progress, pictures, out);
  } else {
    run_lines(arguments, generator, progress, pictures, out);
  }
  out.finish();
  report(generator.counts());
}

}  // namespace

void add_generate(CLI::App& program, Job& job) {
  CLI::App* generate =
      add_command(program, "generate",
                  "Continue texts with a language model\n\n"
                  "The continuation of --prompt is printed as it is generated. Without "
                  "--prompt, each line of --input is a prompt and gets a line of output.")
          ->group(kUsing);
  auto a = std::make_shared<Arguments>();
  add_model(*generate, a->folder);
  a->prompt_option = OptionGroup(*generate, kInputAndOutput)
                         .add("--prompt", a->prompt, text("TEXT", "any text"), "Text to continue");
  a->input_option = add_input(*generate, a->input, "Prompts, one on each line");
  add_output(*generate, a->output, "Where to write the generated texts");
  OptionGroup searching(*generate, kSearch);
  a->search.max_length =
      searching
          .add("--max-tokens", a->search.search.max_length, whole_number(1, 1 << 20),
               "Maximum tokens to generate after a prompt")
          ->default_str(kModelDefault);
  searching
      .add("--stop", a->options.stops, text("TEXT", "any text"),
           "Stop before this text; may be given several times")
      ->allow_extra_args(false);
  searching.flag("--ignore-end", a->ignore_end, "Go on where the model generates its end token");
  a->search.add_to(*generate);
  OptionGroup(*generate, kBatches)
      .add("--batch-prompts", a->options.batch_prompts, whole_number(1, 1 << 16),
           "Prompts per batch");
  add_json(*generate, a->json, "Print one JSON object for each prompt");
  add_picture(*generate, a->picture, "where each new token looked and which tokens were likely");
  add_device_options(*generate, a->device);
  add_examples(*generate, {"nunchi generate runs/gpt --prompt 'Once upon a time' --max-tokens 100",
                           "nunchi generate runs/gpt -i prompts.txt --sample --top-k 20 --seed 7"});
  generate->callback([=, &job] {
    check(*a);
    job = [=] { run(*a); };
  });
}

}  // namespace nunchi::cli
