#include "cli/option_group.h"

namespace nunchi::cli {

CLI::Option* OptionGroup::flag(const std::string& name, bool& value, const std::string& help) {
  return command_.add_flag(name, value, help)->group(title_);
}

CLI::Option* OptionGroup::set_group_and_kind(CLI::Option* option, const ValueKind& kind) const {
  const auto refusal = [kind](const std::string& value) -> std::string {
    if (!kind.accepts || kind.accepts(value)) return {};
    return "must be " + kind.words + ", not '" + value + "'";
  };
  return option->group(title_)
      ->type_name(kind.placeholder)
      ->check(CLI::Validator(refusal, kind.words).name(kind.completion));
}

CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& description) {
  return parent.add_subcommand(name, description);
}

void add_examples(CLI::App& command, const std::vector<std::string>& lines) {
  std::string text = "Examples:";
  for (const std::string& line : lines) text += "\n  " + line;
  command.footer(text);
}

CLI::Option* add_input(CLI::App& command, std::string& input, const std::string& help) {
  return OptionGroup(command, kInputAndOutput).add("-i,--input", input, input_file(), help);
}

void add_output(CLI::App& command, std::string& output, const std::string& help) {
  OptionGroup(command, kInputAndOutput).add("-o,--output", output, output_file(), help);
}

CLI::Option* add_model(CLI::App& command, std::string& folder) {
  return OptionGroup(command, kArguments)
      .add("-m,--model,MODEL", folder, model_folder(),
           "Model folder: a run's output or a checkpoint")
      ->required();
}

void add_models(CLI::App& command, std::vector<std::string>& folders) {
  OptionGroup(command, kArguments)
      .add("-m,--model,MODEL", folders, model_folder(),
           "Model folder: a run's output or a checkpoint; several form an ensemble")
      ->required();
}

void add_json(CLI::App& command, bool& json, const std::string& help) {
  OptionGroup(command, kOutputFormat).flag("--json", json, help);
}

}  // namespace nunchi::cli
