#include "nunchi/training/run/metrics_log.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "nunchi/base/atomic_file.h"

namespace nunchi {
namespace {

// Whether a line of the log is complete and of a step up to `last`.
bool keeps(const std::string& line, std::int64_t last) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return false;
  const auto step = json.find("step");
  return step != json.end() && step->is_number_integer() && step->get<std::int64_t>() <= last;
}

// Removes the other lines; returns the path.
std::filesystem::path cut_after(const std::filesystem::path& path, std::int64_t last) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return path;
  std::string kept, line;
  bool cut = false;
  while (std::getline(file, line)) {
    // A last line without a line end is truncated even if it looks complete.
    if (!file.eof() && keeps(line, last)) {
      kept += line + "\n";
    } else {
      cut = true;
    }
  }
  if (!cut) return path;
  AtomicFile shorter(path);
  shorter.write(std::as_bytes(std::span(kept)));
  shorter.commit();
  return path;
}

}  // namespace

MetricsLog::MetricsLog(const std::filesystem::path& folder, std::int64_t step)
    : lines_(cut_after(folder / "log.jsonl", step)), events_(folder / "events", step + 1) {}

void MetricsLog::write(std::int64_t step, std::span<const NamedValue> values) {
  nlohmann::ordered_json json = {{"step", step}};
  for (const auto& [name, value] : values) json[name] = value;
  lines_.write(json.dump() + "\n");
  events_.write(step, values);
}

}  // namespace nunchi
