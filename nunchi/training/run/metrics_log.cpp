#include "nunchi/training/run/metrics_log.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "nunchi/base/atomic_file.h"

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

}  // namespace

MetricsLog::MetricsLog(const std::filesystem::path& folder, std::int64_t step)
    : lines_(truncate_after(folder / "log.jsonl", step)), events_(folder / "events", step + 1) {}

void MetricsLog::write(std::int64_t step, std::span<const NamedValue> values) {
  nlohmann::ordered_json json = {{"step", step}};
  for (const auto& [name, value] : values) json[name] = value;
  lines_.write(json.dump() + "\n");
  events_.write(step, values);
}

}  // namespace nunchi
