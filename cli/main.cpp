#include <cstdio>
#include <new>
#include <span>

#include "cli/program.h"
#include "nunchi/base/error.h"

namespace {

int report(const char* message, int code) {
  std::fprintf(stderr, "nunchi: %s\n", message);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  nunchi::cli::Program program;
  try {
    program.parse(std::span(argv, static_cast<std::size_t>(argc)).subspan(argc > 0 ? 1 : 0));
    program.run();
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      return report("the output could not be written.", 1);
    }
    return 0;
  } catch (const CLI::ParseError& error) {
    return program.report(error);
  } catch (const nunchi::UsageError& error) {
    return report(error.what(), 2);
  } catch (const std::bad_alloc&) {
    return report("out of memory.", 1);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
}
