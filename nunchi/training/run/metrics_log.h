// The numbers of a run, as they come: for programs in log.jsonl, for people in TensorBoard.
//
// log.jsonl has one JSON object a line, {"step": 50, "train/loss": 4.2, …}: the step, then the
// values in the order given, in as many digits as it takes to read the same double again (null for
// what is not finite). events/ has the same values as f32. Both are written when write() returns.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "nunchi/training/run/event_file.h"

namespace nunchi {

class MetricsLog {
 public:
  // Continues the logs of a run's folder after `step`, 0 for a run that begins: lines about later
  // steps, which will be taken again, and a line cut short by a crash go away; an event file is
  // begun. Throws Error with the system's reason.
  MetricsLog(const std::filesystem::path& folder, std::int64_t step);

  void write(std::int64_t step, std::span<const NamedValue> values);

 private:
  AppendFile lines_;
  EventFile events_;
};

}  // namespace nunchi
