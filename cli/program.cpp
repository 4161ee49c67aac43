#include "cli/program.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/help.h"
#include "cli/man_page.h"
#include "nunchi/base/error.h"
#include "nunchi/base/nearest.h"
#include "nunchi/base/printable.h"
#include "nunchi/base/version.h"
#include "nunchi/device/cpu/isa.h"
#include "nunchi/kernels/product.h"

namespace nunchi::cli {
namespace {

constexpr std::string_view kHelpCommand = "help";

// What --version prints: the version in a line of its own, then what a report of a problem needs.
std::string version_text() {
  const std::string cuda(cuda_build().empty() ? "no" : cuda_build());
  return "nunchi " + std::string(version()) + "\ncommit: " + std::string(commit()) +
         "\nCUDA: " + cuda + "\nCPU products: " + kernels::product_library() +
         "\ninstruction set: " + name_of(chosen_isa());
}

bool is_about_extras(const CLI::ParseError& error) {
  return error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
}

// CLI11 lists unexpected arguments in reverse order.
std::string extras_message(const std::vector<std::string>& extras) {
  std::string message = extras.size() == 1 ? "the following argument was not expected:"
                                           : "the following arguments were not expected:";
  for (const std::string& argument : extras) message += " " + printable(argument);
  return message;
}

// The option that is most similar to an unknown one; empty if none is similar.
std::string nearest_option(const CLI::App& command, const CLI::ParseError& error) {
  if (!is_about_extras(error)) return {};
  const std::string text = error.what();
  const std::size_t begin = text.find("--");
  if (begin == text.npos) return {};
  const std::string word = text.substr(begin, text.find_first_of(" =", begin) - begin);
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return nearest(word, names);
}

// An argument that is also an option ("-m,--model,MODEL") is called by the name of the argument.
void name_arguments(const CLI::App& command, std::string& message) {
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional() || option->get_lnames().empty()) continue;
    const std::string name = option->get_name();
    if (message.starts_with(name + " ") || message.starts_with(name + ":")) {
      message.replace(0, name.size(), option->get_name(true, false));
    }
  }
}

// CLI11's message in our style: "--length must be …" instead of "--length: must be …", lower case
// at the beginning, no control characters, no full stop.
std::string message_of(const CLI::App& command, const CLI::ParseError& error) {
  std::string message = error.what();
  name_arguments(command, message);
  if (const std::size_t colon = message.find(": must be "); colon != message.npos)
    message.erase(colon, 1);
  const auto is_lower = [](char c) { return std::islower(static_cast<unsigned char>(c)) != 0; };
  if (message.starts_with("A ") || (message.size() > 1 && is_lower(message[1]))) {
    message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
  }
  for (char& c : message) {
    if (std::iscntrl(static_cast<unsigned char>(c)) != 0) c = '?';
  }
  while (message.ends_with('.')) message.pop_back();
  return message;
}

// Throws UsageError for an unknown command, naming the most similar one.
void check_command(const CLI::App& program, const std::vector<std::string>& words) {
  const CLI::App* app = &program;
  std::string call = program.get_name();
  for (const std::string& word : words) {
    if (word.starts_with('-')) continue;
    if (app->get_require_subcommand_min() == 0) return;
    std::vector<std::string> names;
    const CLI::App* found = nullptr;
    for (const CLI::App* command : app->get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(command->get_name());
      if (command->get_name() == word) found = command;
    }
    if (found == nullptr) {
      const std::string similar = nearest(word, names);
      throw UsageError("there is no command '" + printable(word) + "'" +
                       (similar.empty() ? "" : "; did you mean '" + similar + "'?") +
                       (similar.empty() ? "; see '" : " See '") + call + " --help'.");
    }
    app = found;
    call += " " + word;
  }
}

}  // namespace

Program::Program()
    : app_("Nunchi (눈치): the Transformer, from raw text to translation", "nunchi") {
  app_.formatter(std::make_shared<HelpFormatter>());
  app_.require_subcommand(1);
  app_.set_help_flag("-h,--help", "Print this help");
  app_.set_version_flag("-V,--version", version_text, "Print the version and how it was built");
  // For tests of the examples in the help.
  app_.add_flag("--parse-only", parse_only_, "Check the command line without running it")
      ->group("");
  add_demo(app_, job_);
  add_lab(app_, job_);
  add_tokenizer(app_, job_);
  add_train(app_, job_);
  add_average(app_, job_);
  add_quantize(app_, job_);
  add_translate(app_, job_);
  add_generate(app_, job_);
  add_fill(app_, job_);
  add_embed(app_, job_);
  add_classify(app_, job_);
  add_score(app_, job_);
  add_inspect(app_, job_);
  add_info(app_, job_);
  add_evaluate(app_, job_);
  add_bench(app_, job_);
  add_completion(app_, job_);
  app_.footer(
      "'nunchi help COMMAND' shows the options of a command, with examples;\n"
      "'nunchi help --man' prints the manual page.");
}

Program::~Program() = default;

void Program::parse(std::span<char*> arguments) {
  std::vector<std::string> words(arguments.begin(), arguments.end());
  if (words == std::vector<std::string>{std::string(kHelpCommand), "--man"}) {
    job_ = [this] {
      const std::string page = man_page(app_);
      std::fwrite(page.data(), 1, page.size(), stdout);
    };
    return;
  }
  if (!words.empty() && words.front() == kHelpCommand) {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  check_command(app_, words);
  std::ranges::reverse(words);  // CLI11 expects a vector in reverse order
  app_.parse(words);
}

void Program::run() const {
  if (!parse_only_) job_();
}

int Program::report(const CLI::ParseError& error) const {
  if (error.get_exit_code() == 0) return app_.exit(error);
  std::string call = app_.get_name();
  const CLI::App* command = &app_;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().back();
    call += " " + command->get_name();
  }
  const std::string similar = nearest_option(*command, error);
  const std::vector<std::string> extras = app_.remaining(true);
  const std::string message = is_about_extras(error) && !extras.empty()
                                  ? extras_message(extras)
                                  : message_of(*command, error);
  std::fprintf(stderr, "nunchi: %s%s%s --help'.\n", message.c_str(),
               (similar.empty() ? "; see '" : "; did you mean " + similar + "? See '").c_str(),
               call.c_str());
  return 2;
}

}  // namespace nunchi::cli
