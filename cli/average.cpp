#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
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
    throw UsageError("'" + arguments.out + "' holds a model already. Choose another folder.");
  }
  average_models(
      std::vector<std::filesystem::path>(arguments.folders.begin(), arguments.folders.end()),
      arguments.out);
  fmt::print(stderr, "the mean of {} {} is in {}\n", arguments.folders.size(),
             arguments.folders.size() == 1 ? "model" : "models", arguments.out);
}

}  // namespace

void add_average(CLI::App& program) {
  CLI::App* average = program.add_subcommand("average", "Save the mean of several checkpoints");
  auto arguments = std::make_shared<Arguments>();
  average->add_option("OUT", arguments->out, "Model folder to write")->required();
  average->add_option("CHECKPOINT", arguments->folders, "Checkpoints or other model folders")
      ->required();
  average->callback([=] { run(*arguments); });
}

}  // namespace nunchi::cli
