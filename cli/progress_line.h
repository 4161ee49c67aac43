// A line on stderr that moves in a terminal; elsewhere a plain line now and then.
#pragma once

#include <chrono>
#include <string>

#include "nunchi/training/trainer.h"

namespace nunchi::cli {

class ProgressLine {
 public:
  ProgressLine();
  // Takes the line away.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // At most ten times a second in a terminal, elsewhere about once in half a minute; the rest is
  // dropped.
  void show(const std::string& text);
  // A line that stays, above the moving one.
  void keep(const std::string& text);
  // What fits into the line.
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
// "[####......] step 400 of 1,700  loss 1.2345  9,876 target tokens/s  1:23 left"; where that is
// too wide for the columns, the bar is shorter or goes.
std::string training_line(const TrainingProgress& progress, std::size_t columns);

}  // namespace nunchi::cli
