// Progress on stderr: one line that is updated in place in a terminal, a new line now and then
// elsewhere.
#pragma once

#include <chrono>
#include <string>

#include "nunchi/training/progress.h"

namespace nunchi::cli {

class ProgressLine {
 public:
  ProgressLine();
  // Clears the line.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Shows at most ten lines a second in a terminal, one in 30 seconds elsewhere; drops the others.
  void show(const std::string& text);
  // Prints a line that stays above the progress.
  void keep(const std::string& text);
  // Columns of the terminal; unlimited elsewhere.
  std::size_t columns() const;

 private:
  void clear();

  using Clock = std::chrono::steady_clock;
  bool terminal_;
  bool shown_ = false;
  Clock::time_point next_;
};

// "[#####.....]", `fraction` from 0 to 1.
std::string bar(double fraction, std::size_t width = 20);
// "1:02:03", "2:03".
std::string duration(double seconds);
// "[####......] step 400 of 1,700  loss 1.2345  9,876 target tokens/s  1:23 left"; the bar is
// shortened or left out where the line would be wider than `columns`.
std::string training_line(const TrainingProgress& progress, std::size_t columns);

}  // namespace nunchi::cli
