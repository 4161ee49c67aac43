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

constexpr std::size_t kBar = 20, kShortestBar = 5;

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
  fmt::print(stderr, "\r\033[K{}", text.substr(0, columns()));
  std::fflush(stderr);
  shown_ = true;
}

void ProgressLine::keep(const std::string& text) {
  clear();
  fmt::print(stderr, "{}\n", text);
}

std::size_t ProgressLine::columns() const {
  if (!terminal_) return std::string::npos;
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  // A wider line would wrap and could not be replaced.
  return known ? size.ws_col - 1u : 79;
}

void ProgressLine::clear() {
  if (shown_) fmt::print(stderr, "\r\033[K");
  shown_ = false;
}

std::string bar(double fraction, std::size_t width) {
  const double within = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0;
  const auto filled = static_cast<std::size_t>(within * static_cast<double>(width));
  return "[" + std::string(filled, '#') + std::string(width - filled, '.') + "]";
}

std::string duration(double seconds) {
  const auto whole = static_cast<long long>(std::min(std::max(0.0, std::round(seconds)), 1e12));
  const long long hours = whole / 3600, minutes = whole / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60)
                   : fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string training_line(const TrainingProgress& progress, std::size_t columns) {
  std::string line = "step " + grouped(progress.step);
  if (progress.total_steps > 0) line += " of " + grouped(progress.total_steps);
  line += fmt::format("  loss {:.4f}  {} target tokens/s", progress.loss,
                      grouped(static_cast<std::int64_t>(progress.target_tokens_per_second)));
  if (progress.seconds_left >= 0) line += fmt::format("  {} left", duration(progress.seconds_left));
  const std::size_t width = columns > line.size() + 3 ? columns - line.size() - 3 : 0;
  if (progress.total_steps <= 0 || width < kShortestBar) return line;
  const double done =
      static_cast<double>(progress.step) / static_cast<double>(progress.total_steps);
  return bar(done, std::min(kBar, width)) + " " + line;
}

}  // namespace nunchi::cli
