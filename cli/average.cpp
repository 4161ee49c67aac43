#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/option_group.h"
#include "nunchi/base/error.h"
#include "nunchi/training/run/average.h"

namespace nunchi::cli {
namespace {

struct Arguments {
  std::string out;
  std::vector<std::string> folders;
};

void run(const Arguments& arguments) {
  if (std::filesystem::exists(std::filesystem::path(arguments.out) / "model.safetensors")) {
    throw UsageError("'" + arguments.out + "' already contains a model. Choose another folder.");
  }
  average_models(
      std::vector<std::filesystem::path>(arguments.folders.begin(), arguments.folders.end()),
      arguments.out);
  fmt::print(stderr, "the average of {} {} is in {}\n", arguments.folders.size(),
             arguments.folders.size() == 1 ? "model" : "models", arguments.out);
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
           "Checkpoints or other model folders of the same shape")
      ->required();
  add_examples(*average, {"nunchi average runs/mean runs/mine/checkpoints/step-9000 \\\n"
                          "    runs/mine/checkpoints/step-10000"});
  average->callback([=, &job] { job = [=] { run(*arguments); }; });
}

}  // namespace nunchi::cli
