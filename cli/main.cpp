#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>

#include "cli/commands.h"
#include "nunchi/base/error.h"

namespace {

int report(const char* message, int code) {
  std::fprintf(stderr, "nunchi: %s\n", message);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("Nunchi (눈치): the Transformer, from raw text to translation.", "nunchi");
  program.require_subcommand(1);
  program.set_version_flag("--version", "nunchi 0.1.0");
  nunchi::cli::add_average(program);
  nunchi::cli::add_bench(program);
  nunchi::cli::add_demo(program);
  nunchi::cli::add_evaluate(program);
  nunchi::cli::add_info(program);
  nunchi::cli::add_score(program);
  nunchi::cli::add_train(program);
  nunchi::cli::add_translate(program);
  nunchi::cli::add_tokenizer(program);
  try {
    program.parse(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      return report("the output could not be written.", 1);
    }
    return 0;
  } catch (const CLI::ParseError& error) {
    // --help and --version end here too, with code 0.
    if (error.get_exit_code() == 0) return program.exit(error);
    program.exit(error);
    return 2;
  } catch (const nunchi::UsageError& error) {
    return report(error.what(), 2);
  } catch (const std::bad_alloc&) {
    return report("out of memory.", 1);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
}
