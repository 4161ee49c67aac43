// Logs the metrics of a run: log.jsonl for programs, TensorBoard event files for people.
//
// Each line of log.jsonl is a JSON object, {"step": 50, "train/loss": 4.2, …}: the step, then the
// values in the given order, with enough digits to restore the same double (null for values that
// are not finite). Event files, events.out.tfevents.N in the same folder, have the same values as
// f32, and what programs do not need: options of the run, sample translations, the model's score.
// TensorBoard names a run after the folder of its event files. When a function returns, its values
// are in the files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "nunchi/training/run/event_file.h"

namespace nunchi {

struct SampleTranslation {
  std::string source, reference, translation;
};

class MetricsLog {
 public:
  // Continues the logs in a run's folder after `step`, which is 0 for a new run. Removes the lines
  // of later steps, which will be repeated, and a line that a crash truncated; starts a new event
  // file. Moves event files of earlier versions from events/ to the folder. Throws Error with the
  // system's error message.
  MetricsLog(const std::filesystem::path& folder, std::int64_t step);

  void write(std::int64_t step, std::span<const NamedValue> values);

  // For TensorBoard only: the options of the run, as keys and texts.
  void write_options(std::span<const std::pair<std::string, std::string>> options);
  // For TensorBoard only: a table with a header; nothing if there are no samples.
  void write_samples(std::int64_t step, std::span<const SampleTranslation> samples);
  // For TensorBoard only: the run has finished, and its model has this score, unless it is empty.
  void write_end(std::int64_t step, const std::optional<NamedValue>& score);

 private:
  AppendFile lines_;
  EventFile events_;
};

}  // namespace nunchi
