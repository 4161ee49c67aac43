#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/option_group.h"
#include "nunchi/base/error.h"
#include "nunchi/training/run/average.h"
#include "nunchi/training/run/checkpoint.h"

namespace nunchi::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string out;
  std::vector<std::string> folders;
  std::size_t last = 0, best = 0;  // 0: not given
};

std::vector<fs::path> models_of(const Arguments& arguments) {
  const std::vector<std::string>& folders = arguments.folders;
  if (arguments.last == 0 && arguments.best == 0) return {folders.begin(), folders.end()};
  if (folders.size() != 1) {
    throw UsageError("--last and --best choose the checkpoints of one run, but " +
                     std::to_string(folders.size()) + " folders were given.");
  }
  return arguments.last > 0 ? last_checkpoints(folders.front(), arguments.last)
                            : best_checkpoints(folders.front(), arguments.best);
}

void run(const Arguments& arguments) {
  if (fs::exists(fs::path(arguments.out) / "model.safetensors")) {
    throw UsageError("'" + arguments.out + "' already contains a model. Choose another folder.");
  }
  const std::vector<fs::path> models = models_of(arguments);
  ModelMean{models}.save(arguments.out);
  std::string names;
  if (arguments.last > 0 || arguments.best > 0) {
    for (const fs::path& model : models) {
      names += (names.empty() ? " (" : ", ") + model.filename().string();
    }
    names += ")";
  }
  fmt::print(stderr, "the average of {} {}{} is in {}\n", models.size(),
             models.size() == 1 ? "model" : "models", names, arguments.out);
}

}  // namespace

void add_average(CLI::App& program, Job& job) {
  CLI::App* average = add_command(program, "average", "Average the weights of several checkpoints")
                          ->group(kTraining);
  auto arguments = std::make_shared<Arguments>();
  OptionGroup positional(*average, kArguments);
  positional.add("OUT", arguments->out, text("OUT", "a folder"), "Model folder to write")
      ->required();
  positional
      .add("CHECKPOINT", arguments->folders, text("CHECKPOINT", "one or more folders"),
           "Checkpoints or other model folders of the same shape; with --last or --best the folder "
           "of a run")
      ->required();
  OptionGroup chosen(*average, "Checkpoints");
  CLI::Option* last = chosen
                          .add("--last", arguments->last, whole_number(1, 10000),
                               "Average this many newest checkpoints of the run")
                          ->default_str("");
  chosen
      .add("--best", arguments->best, whole_number(1, 10000),
           "Average the checkpoints of the run with the best validation scores")
      ->default_str("")
      ->excludes(last);
  add_examples(*average, {"nunchi average runs/mean runs/mine --last 5",
                          "nunchi average runs/mean runs/mine/checkpoints/step-9000 \\\n"
                          "    runs/mine/checkpoints/step-10000"});
  average->callback([=, &job] { job = [=] { run(*arguments); }; });
}

}  // namespace nunchi::cli
