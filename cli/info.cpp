#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "nunchi/base/grouped.h"
#include "nunchi/models/format/folder.h"

namespace nunchi::cli {
namespace {

struct Arguments {
  std::string folder;
  bool json = false;
  bool tensors = false;
};

void run(const Arguments& arguments) {
  const ModelDescription described = describe_model(arguments.folder);
  const Model& model = *described.model;
  const auto config = nlohmann::ordered_json::parse(model.config_json());
  if (arguments.json) {
    nlohmann::ordered_json json = {{"family", model.family()},
                                   {"parameters", model.parameters().count()},
                                   {"bytes", described.file_bytes},
                                   {"config", config}};
    fmt::print("{}\n", json.dump());
    return;
  }
  fmt::print("{:<24}{}\n", "family", model.family());
  fmt::print("{:<24}{}\n", "parameters", grouped(model.parameters().count()));
  fmt::print("{:<24}{:.1f} MiB\n", "on disk",
             static_cast<double>(described.file_bytes) / (1 << 20));
  for (const auto& [key, value] : config.items()) {
    if (key != "family")
      fmt::print("{:<24}{}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  if (!arguments.tensors) return;
  for (const nn::ParameterEntry& entry : model.parameters().entries()) {
    fmt::print("{:<56}{:>16}{:>14}\n", entry.name, entry.shape.to_string(),
               grouped(entry.shape.elements()));
  }
}

}  // namespace

void add_info(CLI::App& program) {
  CLI::App* info = program.add_subcommand("info", "Show what a model folder holds");
  auto arguments = std::make_shared<Arguments>();
  info->add_option("MODEL", arguments->folder, "Model folder")->required();
  info->add_flag("--tensors", arguments->tensors, "List every parameter");
  info->add_flag("--json", arguments->json, "One JSON object on stdout");
  info->callback([=] { run(*arguments); });
}

}  // namespace nunchi::cli
