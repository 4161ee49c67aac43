#include "cli/picture.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "cli/option_group.h"

namespace nunchi::cli {

void add_picture(CLI::App& command, bool& picture, const std::string& what) {
  OptionGroup(command, kOutputFormat)
      .flag("--picture", picture, "Draw " + what + ", on standard error");
}

AttentionPictureOptions picture_options() {
  if (::isatty(STDERR_FILENO) == 0) return {};
  AttentionPictureOptions options{.color = std::getenv("NO_COLOR") == nullptr};
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
    options.width = size.ws_col;
  return options;
}

void print_picture(const std::string& picture) {
  if (picture.empty()) return;
  fmt::print(stderr, "\n{}\n", picture);
  std::fflush(stderr);
}

}  // namespace nunchi::cli
