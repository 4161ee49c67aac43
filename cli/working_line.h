// Shows on a terminal that a job is at work: "1,024 lines done, 0:35". While one long line is being
// processed, it also shows how far that is: "0 lines done, encoding: layer 3 of 6 (45%), 0:35".
// Nothing is shown in the first seconds, while the job waits for input, and when standard error is
// not a terminal.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "cli/progress_line.h"
#include "nunchi/data/lines.h"
#include "nunchi/device/work_progress.h"

namespace nunchi::cli {

class WorkingLine {
 public:
  // `done` describes what add() counts: "lines done". `progress` outlives this object.
  WorkingLine(std::string done, const WorkProgress& progress);
  ~WorkingLine();
  WorkingLine(const WorkingLine&) = delete;
  WorkingLine& operator=(const WorkingLine&) = delete;

  void add(std::int64_t count);
  // Hides the line while f() writes, perhaps to the same terminal.
  template <class F>
  void hide_while(const F& f) {
    const std::lock_guard lock(mutex_);
    line_.clear();
    f();
  }
  // The same lines. While they are being waited for, nothing is shown. This object outlives them.
  std::unique_ptr<LineSource> watched(std::unique_ptr<LineSource> lines);

 private:
  class WatchedLines;
  using Clock = std::chrono::steady_clock;
  void set_waiting(bool waiting);
  void run();

  std::string done_;
  const WorkProgress& progress_;
  std::mutex mutex_;
  std::condition_variable changed_;
  ProgressLine line_;
  Clock::time_point start_ = Clock::now();
  std::int64_t count_ = 0;
  bool waiting_ = false, ended_ = false;
  std::thread thread_;  // runs only on a terminal
};

}  // namespace nunchi::cli
