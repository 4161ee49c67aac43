#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/waiting_threads.h"
#include "nunchi/base/error.h"
#include "nunchi/base/nearest.h"
#include "nunchi/base/printable.h"
#include "nunchi/base/version.h"

namespace {

int report(const char* message, int code) {
  std::fprintf(stderr, "nunchi: %s\n", message);
  return code;
}

// The option that may have been meant by the first one that does not exist; empty: none.
std::string meant_option(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::ExtrasError)) return {};
  const std::string text = error.what();
  const std::size_t begin = text.find("--");
  if (begin == text.npos) return {};
  const std::string word = text.substr(begin, text.find_first_of(" =", begin) - begin);
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return nunchi::nearest(word, names);
}

// What CLI11 has to say about a wrong call, as we say things.
int report_wrong_call(const CLI::App& program, const CLI::ParseError& error) {
  std::string call = program.get_name();
  const CLI::App* app = &program;
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().back();
    call += " " + app->get_name();
  }
  std::string message = error.what();
  if (message.size() > 1 && std::islower(static_cast<unsigned char>(message[1])) != 0) {
    message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
  } else if (message.starts_with("A ")) {
    message[0] = 'a';
  }
  for (char& c : message) {
    if (std::iscntrl(static_cast<unsigned char>(c)) != 0) c = '?';
  }
  while (message.ends_with('.')) message.pop_back();
  const std::string near = meant_option(*app, error);
  message += near.empty() ? "; see '" : "; did you mean " + near + "? See '";
  return report((message + call + " --help'.").c_str(), 2);
}

// Throws UsageError for a command that does not exist, and names the nearest that does.
void check_command(CLI::App& program, std::span<char*> arguments) {
  CLI::App* app = &program;
  std::string call = program.get_name();
  for (const char* argument : arguments.subspan(std::min<std::size_t>(1, arguments.size()))) {
    const std::string word = argument;
    if (app->get_require_subcommand_min() == 0 || word.starts_with('-')) return;
    std::vector<std::string> names;
    for (const CLI::App* one : app->get_subcommands(nullptr)) names.push_back(one->get_name());
    if (std::ranges::find(names, word) == names.end()) {
      const std::string near = nunchi::nearest(word, names);
      throw nunchi::UsageError("there is no command '" + nunchi::printable(word) + "'" +
                               (near.empty() ? "" : "; did you mean '" + near + "'?") +
                               (near.empty() ? "; see '" : " See '") + call + " --help'.");
    }
    app = app->get_subcommand(word);
    call += " " + word;
  }
}

}  // namespace

int main(int argc, char** argv) {
  nunchi::cli::make_threads_wait_quietly(argv);
  CLI::App program("Nunchi (눈치): the Transformer, from raw text to translation.", "nunchi");
  program.require_subcommand(1);
  program.set_version_flag("--version", "nunchi " + std::string(nunchi::version()));
  nunchi::cli::add_average(program);
  nunchi::cli::add_bench(program);
  nunchi::cli::add_classify(program);
  nunchi::cli::add_demo(program);
  nunchi::cli::add_embed(program);
  nunchi::cli::add_evaluate(program);
  nunchi::cli::add_fill(program);
  nunchi::cli::add_generate(program);
  nunchi::cli::add_info(program);
  nunchi::cli::add_score(program);
  nunchi::cli::add_train(program);
  nunchi::cli::add_translate(program);
  nunchi::cli::add_tokenizer(program);
  try {
    check_command(program, std::span(argv, static_cast<std::size_t>(argc)));
    program.parse(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      return report("the output could not be written.", 1);
    }
    return 0;
  } catch (const CLI::ParseError& error) {
    // --help and --version end here too, with code 0.
    if (error.get_exit_code() == 0) return program.exit(error);
    return report_wrong_call(program, error);
  } catch (const nunchi::UsageError& error) {
    return report(error.what(), 2);
  } catch (const std::bad_alloc&) {
    return report("out of memory.", 1);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
}
