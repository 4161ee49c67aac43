#include "nunchi/training/run/metrics_log.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "nunchi/base/atomic_file.h"
#include "nunchi/training/run/event_summaries.h"

namespace nunchi {
namespace {

// Whether a line of the log is complete and its step is at most `last`.
bool is_valid_line(const std::string& line, std::int64_t last) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return false;
  const auto step = json.find("step");
  return step != json.end() && step->is_number_integer() && step->get<std::int64_t>() <= last;
}

// Removes incomplete lines and those of steps after `last`; returns the path.
std::filesystem::path truncate_after(const std::filesystem::path& path, std::int64_t last) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return path;
  std::string kept, line;
  bool removed = false;
  while (std::getline(file, line)) {
    // A last line without a newline was truncated, even if it looks complete.
    if (!file.eof() && is_valid_line(line, last)) {
      kept += line + "\n";
    } else {
      removed = true;
    }
  }
  if (!removed) return path;
  AtomicFile shorter(path);
  shorter.write(std::as_bytes(std::span(kept)));
  shorter.commit();
  return path;
}

// Earlier versions wrote to events/, which TensorBoard would show as another run. Errors are
// ignored: the old files stay where they are. Returns the folder.
const std::filesystem::path& with_moved_events(const std::filesystem::path& folder) {
  std::error_code ignored;
  const std::filesystem::path old = folder / "events";
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(old, ignored)) {
    files.push_back(entry.path());
  }
  for (const std::filesystem::path& file : files) {
    const std::filesystem::path moved = folder / file.filename();
    if (!std::filesystem::exists(moved, ignored)) std::filesystem::rename(file, moved, ignored);
  }
  std::filesystem::remove(old, ignored);  // succeeds only if it is empty
  return folder;
}

}  // namespace

MetricsLog::MetricsLog(const std::filesystem::path& folder, std::int64_t step)
    : lines_(truncate_after(folder / "log.jsonl", step)),
      events_(with_moved_events(folder), step + 1) {}

void MetricsLog::write(std::int64_t step, std::span<const NamedValue> values) {
  nlohmann::ordered_json json = {{"step", step}};
  for (const auto& [name, value] : values) json[name] = value;
  lines_.write(json.dump() + "\n");
  events_.write(step, values);
}

void MetricsLog::write_options(std::span<const std::pair<std::string, std::string>> options) {
  events_.write_summary(0, session_start_summary(options));
}

void MetricsLog::write_samples(std::int64_t step, std::span<const SampleTranslation> samples) {
  if (samples.empty()) return;
  std::vector<std::vector<std::string>> rows = {{"source", "reference", "translation"}};
  for (const SampleTranslation& sample : samples) {
    rows.push_back({sample.source, sample.reference, sample.translation});
  }
  events_.write_summary(step, text_table_summary("validation/translations", rows));
}

void MetricsLog::write_end(std::int64_t step, const std::optional<NamedValue>& score) {
  if (score) events_.write(step, std::span(&*score, 1));
  events_.write_summary(step, session_end_summary());
}

}  // namespace nunchi
