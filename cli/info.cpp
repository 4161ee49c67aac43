#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/option_group.h"
#include "nunchi/base/grouped.h"
#include "nunchi/models/format/folder.h"
#include "nunchi/training/run/model_choice.h"

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
  const std::optional<ModelChoice> choice = read_model_choice(arguments.folder);
  const auto config = nlohmann::ordered_json::parse(model.config_json());
  if (arguments.json) {
    nlohmann::ordered_json json = {{"family", model.family()},
                                   {"parameters", model.parameters().count()},
                                   {"bytes", described.file_bytes},
                                   {"int8", described.int8},
                                   {"config", config}};
    if (choice) json["weights"] = nlohmann::ordered_json::parse(to_json(*choice));
    fmt::print("{}\n", json.dump());
    return;
  }
  fmt::print("{:<24}{}\n", "family", model.family());
  fmt::print("{:<24}{}\n", "parameters", grouped(model.parameters().count()));
  fmt::print("{:<24}{:.1f} MiB\n", "on disk",
             static_cast<double>(described.file_bytes) / (1 << 20));
  if (!described.int8.empty()) {
    fmt::print("{:<24}{} of {} tensors\n", "int8", described.int8.size(),
               model.parameters().entries().size());
  }
  if (choice) fmt::print("{:<24}{}\n", "weights", to_text(*choice));
  for (const auto& [key, value] : config.items()) {
    if (key != "family")
      fmt::print("{:<24}{}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  if (!arguments.tensors) return;
  for (const nn::ParameterEntry& entry : model.parameters().entries()) {
    fmt::print(
        "{:<56}{:>16}{:>14}{}\n", entry.name, entry.shape.to_string(),
        grouped(entry.shape.elements()),
        std::ranges::find(described.int8, entry.name) != described.int8.end() ? "  int8" : "");
  }
}

}  // namespace

void add_info(CLI::App& program, Job& job) {
  CLI::App* info =
      add_command(program, "info", "Show family, size and config of a model")->group(kUsing);
  auto arguments = std::make_shared<Arguments>();
  add_model(*info, arguments->folder);
  OptionGroup(*info, kOutputFormat).flag("--tensors", arguments->tensors, "List every parameter");
  add_json(*info, arguments->json, "Print one JSON object");
  add_examples(*info, {"nunchi info runs/demo", "nunchi info runs/demo --json"});
  info->callback([=, &job] { job = [=] { run(*arguments); }; });
}

}  // namespace nunchi::cli
