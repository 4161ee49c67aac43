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

constexpr std::chrono::milliseconds kTerminalInterval{100};
constexpr std::chrono::seconds kLogInterval{30};

constexpr std::size_t kMaxBarWidth = 20, kMinBarWidth = 5;

}  // namespace

ProgressLine::ProgressLine()
    : is_terminal_(::isatty(STDERR_FILENO) != 0),
      next_update_(Clock::now() +
                   (is_terminal_ ? Clock::duration(kTerminalInterval) : kLogInterval)) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::update(const std::string& text) {
  const auto now = Clock::now();
  if (now < next_update_) return;
  next_update_ = now + (is_terminal_ ? Clock::duration(kTerminalInterval) : kLogInterval);
  if (!is_terminal_) {
    fmt::print(stderr, "{}\n", text);
    return;
  }
  fmt::print(stderr, "\r\033[K{}", text.substr(0, columns()));
  std::fflush(stderr);
  shown_ = true;
}

void ProgressLine::print(const std::string& text) {
  clear();
  fmt::print(stderr, "{}\n", text);
}

std::size_t ProgressLine::columns() const {
  if (!is_terminal_) return std::string::npos;
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  // One column less than the terminal: a line that wraps could not be replaced.
  return known ? size.ws_col - 1u : 79;
}

void ProgressLine::clear() {
  if (shown_) fmt::print(stderr, "\r\033[K");
  if (shown_) std::fflush(stderr);
  shown_ = false;
}

std::string bar(double fraction, std::size_t width) {
  const double clamped = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0;
  const auto filled = static_cast<std::size_t>(clamped * static_cast<double>(width));
  return "[" + std::string(filled, '#') + std::string(width - filled, '.') + "]";
}

std::string duration(double seconds) {
  const auto whole = static_cast<long long>(std::min(std::max(0.0, std::round(seconds)), 1e12));
  const long long hours = whole / 3600, minutes = whole / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60)
                   : fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string learning_line(const LearnProgress& progress) {
  switch (progress.stage) {
    case LearnProgress::Stage::reading:
      return fmt::format("reading the text  {} lines", grouped(progress.lines));
    case LearnProgress::Stage::counting:
      if (progress.counted == progress.lines) {
        return fmt::format("counting the words of {} lines", grouped(progress.lines));
      }
      return fmt::format(
          "{} counting the characters  {} of {} lines",
          bar(static_cast<double>(progress.counted) / static_cast<double>(progress.lines)),
          grouped(progress.counted), grouped(progress.lines));
    case LearnProgress::Stage::sorting:
      return fmt::format("sorting the substrings of {} lines", grouped(progress.lines));
    case LearnProgress::Stage::learning:
      break;
  }
  return bar(progress.fraction) + " learning the tokenizer";
}

std::string training_line(const TrainingProgress& progress, std::size_t columns) {
  std::string line = "step " + grouped(progress.step);
  if (progress.total_steps > 0) line += " of " + grouped(progress.total_steps);
  line += fmt::format("  loss {:.4f}  {} target tokens/s", progress.loss,
                      grouped(static_cast<std::int64_t>(progress.target_tokens_per_second)));
  if (progress.seconds_left >= 0) line += fmt::format("  {} left", duration(progress.seconds_left));
  const std::size_t width = columns > line.size() + 3 ? columns - line.size() - 3 : 0;
  if (progress.total_steps <= 0 || width < kMinBarWidth) return line;
  const double done =
      static_cast<double>(progress.step) / static_cast<double>(progress.total_steps);
  return bar(done, std::min(kMaxBarWidth, width)) + " " + line;
}

}  // namespace nunchi::cli
