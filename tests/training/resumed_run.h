// Compares a run that is stopped and resumed with an uninterrupted run.
#pragma once

#include <atomic>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/training/tiny_run.h"

namespace nunchi::testing {

// The lines of the log without the values that depend on the clock.
inline std::vector<nlohmann::json> timeless_log(const std::filesystem::path& run) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(content(run / "log.jsonl"));
  for (std::string line; std::getline(text, line);) {
    nlohmann::json json = nlohmann::json::parse(line);
    json.erase("train/target_tokens_per_second");
    json.erase("train/elapsed_seconds");
    lines.push_back(std::move(json));
  }
  return lines;
}

// Hooks that set `stop` after `steps` steps.
inline TrainerHooks stopping_after(std::atomic<bool>& stop, std::int64_t steps) {
  TrainerHooks hooks;
  hooks.stop = &stop;
  hooks.progress = [&stop, steps](const TrainingProgress& progress) {
    if (progress.step == steps) stop = true;
  };
  return hooks;
}

// Compares an uninterrupted run with one that is stopped after each of the steps `stops`; the last
// is the run's last step. Both must give the same bits.
inline void expect_same_when_resumed(const TrainConfig& config, const ContextOptions& device,
                                     const std::vector<std::int64_t>& stops) {
  using StartMode = RunFolder::StartMode;
  const TemporaryFolder folder;
  TinyRun whole(folder / "whole", StartMode::fresh, config, device);
  EXPECT_EQ(whole.train(), TrainingEnd::finished);
  std::vector<float> weights;
  for (const std::int64_t stop_after : stops) {
    std::atomic<bool> stop = false;
    TinyRun part(folder / "parts",
                 stop_after == stops.front() ? StartMode::fresh : StartMode::resume, config,
                 device);
    const TrainingEnd end = part.train(stopping_after(stop, stop_after));
    EXPECT_EQ(end, stop_after == stops.back() ? TrainingEnd::finished : TrainingEnd::interrupted);
    EXPECT_EQ(part.state().step, stop_after);
    weights = part.weights();
  }
  EXPECT_TRUE(same_bits(whole.weights(), weights));
  EXPECT_EQ(timeless_log(folder / "whole"), timeless_log(folder / "parts"));
  const std::string last = "checkpoints/step-" + std::to_string(stops.back());
  std::vector<std::string> names = {"model.safetensors", "optimizer.safetensors", "config.json"};
  if (config.training.ema > 0) names.emplace_back(kAverageFile);
  for (const std::string& name : names) {
    EXPECT_FALSE(content(folder / "whole" / last / name).empty()) << name;
    EXPECT_EQ(content(folder / "whole" / last / name), content(folder / "parts" / last / name))
        << name;
  }
}

}  // namespace nunchi::testing
