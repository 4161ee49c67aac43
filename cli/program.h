// The whole command line: all subcommands, parsed into one job.
#pragma once

#include <CLI/CLI.hpp>
#include <span>

#include "cli/commands.h"

namespace nunchi::cli {

class Program {
 public:
  Program();
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Parses the arguments (argv without the program's name). Throws CLI::ParseError for a wrong call
  // and for --help and --version, UsageError for an unknown command.
  void parse(std::span<char*> arguments);
  // Runs the command that was parsed.
  void run() const;

  // Prints the requested help or version and returns 0, or prints one sentence about a wrong
  // call and returns 2.
  int report(const CLI::ParseError& error) const;

 private:
  CLI::App app_;
  Job job_;
  bool parse_only_ = false;
};

}  // namespace nunchi::cli
