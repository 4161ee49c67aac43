// Runs the program as a user would.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "tests/files.h"
#include "tests/paths.h"

namespace nunchi::testing {

struct ProgramResult {
  int code;
  std::string out, error;
};

// `prefix` goes before the command, to set environment variables for example; `input` is the file
// for standard input.
inline ProgramResult run(const std::string& arguments, const std::string& prefix = "",
                         const std::string& input = "/dev/null") {
  const TemporaryFolder folder;
  const std::string command = prefix + " " + NUNCHI_PROGRAM + " " + arguments + " >" +
                              (folder / "out").string() + " 2>" + (folder / "error").string() +
                              " <" + input;
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content(folder / "out"),
          content(folder / "error")};
}

}  // namespace nunchi::testing
