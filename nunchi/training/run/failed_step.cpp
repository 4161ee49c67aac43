#include "nunchi/training/run/failed_step.h"

#include <nlohmann/json.hpp>

#include "nunchi/base/atomic_file.h"
#include "nunchi/base/error.h"

namespace nunchi {
namespace {

// The tokens of each example, or its features as one list of numbers.
nlohmann::ordered_json sources_of(const HostBatch& batch) {
  if (const auto* tokens = std::get_if<std::vector<Tokens>>(&batch.sources)) return *tokens;
  auto sources = nlohmann::ordered_json::array();
  for (const Features& features : std::get<std::vector<Features>>(batch.sources)) {
    sources.push_back({{"width", features.width}, {"values", features.values}});
  }
  return sources;
}

}  // namespace

std::filesystem::path write_failed_step(const std::filesystem::path& folder,
                                        const FailedStep& failed) {
  using Json = nlohmann::ordered_json;
  Json batches = Json::array();
  for (const HostBatch& batch : failed.batches) {
    batches.push_back({{"epoch", batch.epoch},
                       {"batch", batch.number},
                       {"pairs", batch.pairs},
                       {"sources", sources_of(batch)},
                       {"targets", batch.targets}});
  }
  // JSON has no NaN: numbers that are not finite become null.
  const Json json = {{"step", failed.step},
                     {"seed", failed.seed},
                     {"operation", failed.operation},
                     {"loss", failed.report.loss},
                     {"gradient_norm", failed.report.gradient_norm},
                     {"target_tokens", failed.report.target_tokens},
                     {"batches", batches}};
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) throw Error("cannot make the folder " + folder.string() + ": " + failure.message());
  const std::filesystem::path path = folder / ("step-" + std::to_string(failed.step) + ".json");
  const std::string text = json.dump() + "\n";
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
  return path;
}

}  // namespace nunchi
