#include "cli/progress_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "nunchi/base/grouped.h"

namespace nunchi::cli {
namespace {

constexpr std::chrono::milliseconds kInTerminal{100};
constexpr std::chrono::seconds kElsewhere{30};

// A line that is wider than the terminal would not move but pile up.
std::size_t terminal_columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

}  // namespace

ProgressLine::ProgressLine()
    : terminal_(::isatty(STDERR_FILENO) != 0),
      next_(Clock::now() + (terminal_ ? Clock::duration(kInTerminal) : kElsewhere)) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::show(const std::string& text) {
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + (terminal_ ? Clock::duration(kInTerminal) : kElsewhere);
  if (!terminal_) {
    fmt::print(stderr, "{}\n", text);
    return;
  }
  fmt::print(stderr, "\r\033[K{}", text.substr(0, terminal_columns() - 1));
  std::fflush(stderr);
  shown_ = true;
}

void ProgressLine::keep(const std::string& text) {
  clear();
  fmt::print(stderr, "{}\n", text);
}

void ProgressLine::clear() {
  if (shown_) fmt::print(stderr, "\r\033[K");
  shown_ = false;
}

std::string bar(double fraction) {
  constexpr std::size_t kWidth = 20;
  const double within = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0;
  const auto filled = static_cast<std::size_t>(within * kWidth);
  return "[" + std::string(filled, '#') + std::string(kWidth - filled, '.') + "]";
}

std::string duration(double seconds) {
  const auto whole = static_cast<long long>(std::min(std::max(0.0, std::round(seconds)), 1e12));
  const long long hours = whole / 3600, minutes = whole / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60)
                   : fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string training_line(const TrainingProgress& progress) {
  std::string line;
  if (progress.total_steps > 0) {
    line = fmt::format(
        "{} step {} of {}  ",
        bar(static_cast<double>(progress.step) / static_cast<double>(progress.total_steps)),
        grouped(progress.step), grouped(progress.total_steps));
  } else {
    line = fmt::format("step {}  ", grouped(progress.step));
  }
  line += fmt::format("loss {:.4f}  {} target tokens/s", progress.loss,
                      grouped(static_cast<std::int64_t>(progress.target_tokens_per_second)));
  if (progress.seconds_left >= 0) line += fmt::format("  {} left", duration(progress.seconds_left));
  return line;
}

}  // namespace nunchi::cli
