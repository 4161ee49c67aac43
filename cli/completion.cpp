#include "cli/completion.h"

#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/option_group.h"

namespace nunchi::cli {
namespace {

void print_completion(CLI::App& program, const std::string& shell) {
  const std::string script = shell == "bash"  ? bash_completion(program)
                             : shell == "zsh" ? zsh_completion(program)
                                              : fish_completion(program);
  std::fwrite(script.data(), 1, script.size(), stdout);
}

}  // namespace

void add_completion(CLI::App& program, Job& job) {
  CLI::App* completion =
      add_command(program, "completion",
                  "Print a script that completes commands in a shell\n\n"
                  "The shell then completes commands, options and file names with the Tab key.")
          ->group(kShell);
  auto shell = std::make_shared<std::string>();
  OptionGroup(*completion, kArguments)
      .add("SHELL", *shell, one_of({"bash", "zsh", "fish"}, "SHELL"), "The shell to write for")
      ->required();
  add_examples(*completion, {"nunchi completion bash > /etc/bash_completion.d/nunchi",
                             "nunchi completion fish > ~/.config/fish/completions/nunchi.fish"});
  completion->callback(
      [=, &program, &job] { job = [=, &program] { print_completion(program, *shell); }; });
}

}  // namespace nunchi::cli
