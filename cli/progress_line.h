// Progress on stderr: one line that is updated in place in a terminal, or a new line every 30
// seconds elsewhere.
#pragma once

#include <chrono>
#include <string>

#include "nunchi/text/learn_tokenizer.h"
#include "nunchi/training/progress.h"

namespace nunchi::cli {

class ProgressLine {
 public:
  ProgressLine();
  // Clears the line.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Replaces the progress line, at most ten times a second; elsewhere prints a line at most every
  // 30 seconds. Drops other texts.
  void update(const std::string& text);
  // Prints a permanent line above the progress line.
  void print(const std::string& text);
  // Removes the progress line from the terminal until the next update.
  void clear();
  bool is_terminal() const { return is_terminal_; }
  // The maximum columns of a progress line; unlimited without a terminal.
  std::size_t columns() const;

 private:
  using Clock = std::chrono::steady_clock;
  bool is_terminal_;
  bool shown_ = false;  // the terminal shows a progress line
  Clock::time_point next_update_;
};

// "reading the text  12,345 lines", "[##........] counting the characters  2,048 of 12,345 lines",
// "counting the words of 12,345 lines", "sorting the substrings of 12,345 lines", or
// "[#####.....] learning the tokenizer".
std::string learning_line(const LearnProgress& progress);
// "[#####.....]", `fraction` from 0 to 1.
std::string bar(double fraction, std::size_t width = 20);
// "1:02:03", "2:03".
std::string duration(double seconds);
// "[####......] step 400 of 1,700  loss 1.2345  9,876 target tokens/s  1:23 left"; the bar is
// shortened or left out if the line would be wider than `columns`.
std::string training_line(const TrainingProgress& progress, std::size_t columns);

}  // namespace nunchi::cli
