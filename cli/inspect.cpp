#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>

#include "cli/commands.h"
#include "cli/device_options.h"
#include "cli/input_output.h"
#include "cli/search_options.h"
#include "nunchi/base/error.h"
#include "nunchi/inference/pipeline.h"
#include "nunchi/training/run/checkpoint_scores.h"
#include "nunchi/views/html_page.h"
#include "nunchi/views/inspection_json.h"
#include "nunchi/views/inspection_npz.h"
#include "nunchi/views/inspection_svg.h"
#include "nunchi/views/inspection_text.h"

namespace nunchi::cli {
namespace {

struct Arguments {
  std::string folder, output = "-", format = "text", query;
  std::optional<std::string> text, target, view, attention;
  std::optional<int> layer, head, beam_size;
  std::int64_t max_length = InspectorOptions().max_length;
  bool words = false, checkpoints = false;
  ContextOptions device;
};

// The most of standard input that is read: much more than an inspection can show.
constexpr std::size_t kMaxInput = 1 << 20;

std::string text_of(const Arguments& arguments) {
  if (arguments.text) return *arguments.text;
  std::string text(kMaxInput, '\0');
  std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::cin.gcount()));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

// The folder's own name, even for "." and "runs/demo/".
std::string name_of(const std::filesystem::path& folder) {
  const std::filesystem::path full = std::filesystem::weakly_canonical(folder);
  return (full.has_filename() ? full : full.parent_path()).filename().string();
}

Inspection inspect(const Arguments& arguments, const std::filesystem::path& folder,
                   const InspectedInput& input) {
  const Pipeline pipeline = Pipeline::open(folder, {.device = arguments.device});
  InspectorOptions options{.search = pipeline.search(),
                           .max_length = arguments.max_length,
                           .model_name = name_of(folder)};
  if (arguments.beam_size) options.search.beam_size = *arguments.beam_size;
  return pipeline.inspector(options).inspect(input);
}

InspectionSelection selection_of(const Arguments& arguments, const Inspection& inspection) {
  InspectionSelection selection{.attention = arguments.attention, .words = arguments.words};
  for (const auto& choice : kInspectionViews) {
    if (arguments.view == choice.name) selection.view = choice.value;
  }
  if (arguments.layer) selection.layer = *arguments.layer - 1;
  if (arguments.head) selection.head = *arguments.head - 1;
  // A number is that of a row, from 1; "0" and longer numbers can only be words.
  const std::string& query = arguments.query;
  const bool is_number = !query.empty() && query.size() < 6 && query[0] != '0' &&
                         query.find_first_not_of("0123456789") == query.npos;
  if (is_number) {
    selection.query = std::stoi(query) - 1;
  } else {
    selection.query_name = query;
  }
  check_selection(selection, inspection);
  return selection;
}

void report(const Arguments& arguments, const Inspection& inspection) {
  if (!inspection.source_cut && (!inspection.target_cut || inspection.beam)) return;
  fmt::print(stderr,
             "nunchi: the text is too long: only its first {} tokens were used (see "
             "--max-length)\n",
             arguments.max_length);
}

// Columns of the terminal that a text goes to; 80 for a file.
int text_width(const Arguments& arguments) {
  winsize size{};
  const bool known =
      arguments.output == "-" && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? std::min<int>(size.ws_col, 120) : 80;
}

std::string formatted(const Arguments& arguments, const Inspection& inspection) {
  const InspectionSelection selection = selection_of(arguments, inspection);
  if (arguments.format == "html") return html_page(page_payload(std::span(&inspection, 1)));
  if (arguments.format == "text") {
    const bool color = arguments.output == "-" && ::isatty(STDOUT_FILENO) != 0 &&
                       std::getenv("NO_COLOR") == nullptr;
    return to_text(inspection, selection, {.width = text_width(arguments), .color = color});
  }
  if (arguments.format == "svg") return inspection_svg(inspection, selection);
  const Inspection shown = selection.words ? joined_into_words(inspection) : inspection;
  return arguments.format == "npz" ? to_npz(shown, selection) : to_json(shown, selection) + "\n";
}

void inspect_model(const Arguments& arguments, const InspectedInput& input, Output& out) {
  const Inspection inspection = inspect(arguments, arguments.folder, input);
  out.add(formatted(arguments, inspection));
  report(arguments, inspection);
}

// One inspection of each checkpoint of a run.
void inspect_checkpoints(const Arguments& arguments, const InspectedInput& input, Output& out) {
  std::vector<Inspection> inspections;
  std::vector<InspectedCheckpoint> checkpoints;
  for (const CheckpointScores& scores : checkpoint_scores(arguments.folder)) {
    inspections.push_back(inspect(arguments, scores.folder, input));
    inspections.back().model.name = name_of(arguments.folder);
    checkpoints.push_back({.name = scores.folder.filename().string(),
                           .step = scores.step,
                           .loss = scores.loss,
                           .metric = scores.metric,
                           .score = scores.score});
  }
  report(arguments, inspections.back());
  const InspectionSelection selection = selection_of(arguments, inspections.back());
  if (arguments.format == "html") {
    constexpr std::size_t kBytes = 4'700'000;
    out.add(html_page(page_payload(inspections, checkpoints, kBytes)));
  } else {
    out.add(to_json(inspections, checkpoints, selection) + "\n");
  }
}

void run(const Arguments& arguments) {
  const InspectedInput input{.text = text_of(arguments), .target = arguments.target};
  Output out(arguments.output);
  if (arguments.checkpoints) {
    inspect_checkpoints(arguments, input, out);
  } else {
    inspect_model(arguments, input, out);
  }
  out.finish();
}

void check(const Arguments& arguments) {
  if (arguments.checkpoints && arguments.format != "html" && arguments.format != "json") {
    throw UsageError("--checkpoints needs --format html or json.");
  }
  if (arguments.format == "npz" && arguments.output == "-" && ::isatty(STDOUT_FILENO) != 0) {
    throw UsageError("an .npz file cannot be shown in a terminal: give --output FILE.");
  }
}

}  // namespace

void add_inspect(CLI::App& program, Job& job) {
  CLI::App* inspect =
      add_command(program, "inspect",
                  "Show every number of a model while it reads and writes a text\n\n"
                  "An encoder-decoder translates the text, a language model continues it, a "
                  "masked language model fills in its [MASK]. Shows the whole way from text to "
                  "text, or one view of it; --format html makes a page to click through.")
          ->group(kUsing);
  auto a = std::make_shared<Arguments>();
  add_model(*inspect, a->folder);
  OptionGroup(*inspect, kArguments)
      .add("TEXT", a->text, text("TEXT", "a text"),
           "The text to read; from standard input without it");
  OptionGroup input(*inspect, kInputAndOutput);
  input.add("--target", a->target, text("TEXT", "a text"),
            "The translation or continuation to look at; without it the model writes one");
  input.flag("--checkpoints", a->checkpoints,
             "MODEL is the folder of a training run: inspect each of its checkpoints");
  add_output(*inspect, a->output, "Where to write the result");
  OptionGroup format(*inspect, kOutputFormat);
  format.add("--format", a->format, one_of({"text", "json", "npz", "svg", "html"}, "FORMAT"),
             "Format of the result");
  std::vector<std::string> views;
  views.reserve(kInspectionViews.size());
  for (const auto& choice : kInspectionViews) views.emplace_back(choice.name);
  format.add("--view", a->view, one_of(views, "VIEW"), "Show this view only")
      ->default_str("the walk as text, everything in other formats");
  format.flag("--words", a->words, "Join the pieces of a word and add their weights");
  OptionGroup place(*inspect, "Place");
  place.add("--attention", a->attention, one_of({"encoder", "decoder", "cross"}, "KIND"),
            "Attention of this kind only");
  place.add("--layer", a->layer, whole_number(1, 1024), "This layer only, from 1");
  place.add("--head", a->head, whole_number(1, 1024), "This head only, from 1");
  place.add("--query", a->query, text("WORD", "a piece, a word or its number from 1"),
            "The word that looks");
  OptionGroup search(*inspect, kSearch);
  search
      .add("--beam-size", a->beam_size, whole_number(1, 64),
           "Hypotheses to keep for each sentence; 1 is greedy search")
      ->default_str(kModelDefault);
  search.add("--max-length", a->max_length, whole_number(4, InspectorOptions::kLongest),
             "Maximum tokens of each text; longer texts are cut");
  add_device_options(*inspect, a->device);
  add_examples(*inspect, {"nunchi inspect runs/demo '내일 오후 3시에 서울에서 만나요'",
                          "nunchi inspect runs/demo '내일 만나요' --format html --output page.html",
                          "nunchi inspect runs/demo '내일 만나요' --format svg -o heads.svg"});
  inspect->callback([=, &job] {
    check(*a);
    job = [=] { run(*a); };
  });
}

}  // namespace nunchi::cli
