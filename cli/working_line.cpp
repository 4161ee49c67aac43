#include "cli/working_line.h"

#include <fmt/format.h>

#include "nunchi/base/grouped.h"

namespace nunchi::cli {
namespace {

constexpr std::chrono::seconds kQuietTime{2};
constexpr std::chrono::milliseconds kInterval{500};

// "encoding: layer 3 of 6 (45%), "; empty if there is nothing to tell.
std::string stage_of(const WorkProgress::State& state) {
  const auto layer = [&](const char* work) {
    return fmt::format("{}: layer {} of {} ({:.0f}%), ", work, state.done + 1, state.total,
                       100 * state.part);
  };
  switch (state.stage) {
    case WorkProgress::Stage::none:
      return "";
    case WorkProgress::Stage::encoding:
      return layer("encoding");
    case WorkProgress::Stage::reading_prompt:
      return layer("reading the prompt");
    case WorkProgress::Stage::generating:
      break;
  }
  return "token " + grouped(state.done) + " of at most " + grouped(state.total) + ", ";
}

}  // namespace

class WorkingLine::WatchedLines final : public LineSource {
 public:
  WatchedLines(WorkingLine& watcher, std::unique_ptr<LineSource> lines)
      : watcher_(watcher), lines_(std::move(lines)) {}

  bool next(std::string& line) override {
    watcher_.set_waiting(true);
    const bool found = lines_->next(line);
    watcher_.set_waiting(false);
    return found;
  }
  bool is_ready() override { return lines_->is_ready(); }
  std::int64_t cut_lines() const override { return lines_->cut_lines(); }

 private:
  WorkingLine& watcher_;
  std::unique_ptr<LineSource> lines_;
};

WorkingLine::WorkingLine(std::string done, const WorkProgress& progress)
    : done_(std::move(done)), progress_(progress) {
  if (line_.is_terminal()) thread_ = std::thread([this] { run(); });
}

WorkingLine::~WorkingLine() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void WorkingLine::add(std::int64_t count) {
  const std::lock_guard lock(mutex_);
  count_ += count;
}

void WorkingLine::set_waiting(bool waiting) {
  const std::lock_guard lock(mutex_);
  waiting_ = waiting;
}

std::unique_ptr<LineSource> WorkingLine::watched(std::unique_ptr<LineSource> lines) {
  return std::make_unique<WatchedLines>(*this, std::move(lines));
}

void WorkingLine::run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kInterval, [&] { return ended_; })) {
    const auto elapsed = Clock::now() - start_;
    if (waiting_) {
      line_.clear();
    } else if (elapsed >= kQuietTime) {
      line_.update(grouped(count_) + " " + done_ + ", " + stage_of(progress_.state()) +
                   duration(std::chrono::duration<double>(elapsed).count()));
    }
  }
}

}  // namespace nunchi::cli
