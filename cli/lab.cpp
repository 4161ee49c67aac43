#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/option_group.h"
#include "cli/progress_line.h"
#include "cli/stop_signals.h"
#include "nunchi/base/error.h"
#include "nunchi/base/interrupted.h"
#include "nunchi/lab/report.h"

namespace nunchi::cli {
namespace {

struct Arguments {
  std::string name;
  std::filesystem::path output = "runs/lab";
  std::uint64_t seed = 1;
  int threads = 0;
  bool json = false, slides = false;
};

void print_list() {
  fmt::print(
      "Each lab is an experiment on a claim of the notes: 'nunchi lab NAME', or 'nunchi lab "
      "all'.\n\n");
  for (const lab::Lab& one : lab::labs()) {
    fmt::print("  {:<16} {}\n  {:<16} {}\n  {:<16} {}\n\n", one.name, one.question.en, "",
               one.question.ko, "", one.note);
  }
}

lab::Report run_lab(const lab::Lab& one, const Arguments& arguments, ProgressLine& line,
                    const StopSignals& signals) {
  CpuContext context({.threads = arguments.threads});
  const lab::Options options{
      .context = context,
      .seed = arguments.seed,
      .progress =
          [&](const lab::Progress& progress) {
            line.update(fmt::format("{} {}  {}", bar(progress.done), one.name, progress.part));
          },
      .stop = &signals.requested()};
  lab::Report report = lab::run(one, options);
  line.clear();
  return report;
}

void print(const lab::Report& report, std::span<const std::filesystem::path> files) {
  fmt::print("{}\n{}\n{}\n", report.result.log, paragraph(report, lab::Language::ko),
             paragraph(report, lab::Language::en));
  for (const auto& file : files) fmt::print("  {}\n", file.string());
  fmt::print("  {:.1f} seconds\n\n", report.seconds);
}

void run(const Arguments& arguments) try {
  if (arguments.name.empty()) return print_list();
  ProgressLine line;
  const StopSignals signals;
  std::vector<lab::Report> reports;
  for (const lab::Lab& one : lab::labs()) {
    if (arguments.name != "all" && arguments.name != one.name) continue;
    const lab::Report& report = reports.emplace_back(run_lab(one, arguments, line, signals));
    const auto files = lab::write_files(report, arguments.output, arguments.slides);
    if (arguments.json) {
      fmt::print("{}\n", lab::json(report, files));
    } else {
      print(report, files);
    }
    std::fflush(stdout);
  }
  if (arguments.name == "all") {
    line.print("wrote " + lab::write_html(reports, arguments.output).string());
  }
} catch (const Interrupted&) {
  throw Error("stopped before the end; run the same command to start again.");
}

ValueKind lab_name() {
  ValueKind kind = text("NAME", "the name of a lab, or 'all'");
  kind.completion = "all";
  for (const lab::Lab& one : lab::labs()) kind.completion += " " + std::string(one.name);
  return kind;
}

}  // namespace

void add_lab(CLI::App& program, Job& job) {
  CLI::App* command =
      add_command(program, "lab",
                  "Repeat a claim of the notes as an experiment\n\n"
                  "Each lab takes seconds to three minutes on two cores and needs no data. It "
                  "prints what it measured and whether the claim holds, in Korean and English, and "
                  "writes a picture and its numbers. Without a name: the list of labs.")
          ->group(kStart);
  auto arguments = std::make_shared<Arguments>();
  OptionGroup(*command, kArguments).add("NAME", arguments->name, lab_name(), "Which lab to run");
  OptionGroup run_options(*command, "Run");
  run_options.add("--seed", arguments->seed, seed(), "Random seed for data and weights");
  run_options.add("-o,--output", arguments->output, text("FOLDER", "a folder"),
                  "Where to write NAME.svg, NAME.csv and NAME.txt; 'all' also writes report.html");
  run_options.flag("--slides", arguments->slides, "Write NAME-slide.svg too: 16:9, large type");
  run_options.add("--threads", arguments->threads, whole_number(0, 1024),
                  "CPU threads; 0 uses all cores");
  add_json(*command, arguments->json, "Print one JSON object for each lab");
  add_examples(*command, {"nunchi lab", "nunchi lab positions",
                          "nunchi lab all --seed 2 --output runs/lab-2 --json"});
  command->callback([=, &job] {
    if (!arguments->name.empty() && arguments->name != "all") lab::find_lab(arguments->name);
    job = [=] { run(*arguments); };
  });
}

}  // namespace nunchi::cli
