#include "nunchi/training/run/checkpoint_scores.h"

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "nunchi/base/error.h"
#include "nunchi/training/run/checkpoint.h"

namespace nunchi {
namespace {

// Metrics that a validation may log besides its loss; the first that it logs is shown.
constexpr std::array kMetrics = {"bleu", "chrf", "accuracy"};

// Takes the values of one line of a log over.
void update(CheckpointScores& scores, const nlohmann::json& line, bool& validated) {
  const auto number = [&](const std::string& name) -> std::optional<double> {
    const auto found = line.find(name);
    return found != line.end() && found->is_number() ? std::optional(found->get<double>())
                                                     : std::nullopt;
  };
  if (const auto loss = number("validation/loss")) {
    scores.loss = loss;
    validated = true;
  } else if (const auto training_loss = number("train/loss"); training_loss && !validated) {
    scores.loss = training_loss;
  }
  for (const char* metric : kMetrics) {
    if (const auto score = number(std::string("validation/") + metric)) {
      scores.metric = metric;
      scores.score = *score;
      return;
    }
  }
}

}  // namespace

std::vector<CheckpointScores> checkpoint_scores(const std::filesystem::path& run) {
  const std::filesystem::path checkpoints = run / "checkpoints";
  std::vector<CheckpointScores> all;
  for (const std::int64_t step : checkpoint_steps(checkpoints)) {
    all.push_back({.step = step, .folder = checkpoint_path(checkpoints, step)});
  }
  if (all.empty()) {
    throw Error(run.string() + " has no checkpoints: it is not the folder of a training run.");
  }
  std::ifstream log(run / "log.jsonl");
  std::string text;
  CheckpointScores newest;
  bool validated = false;
  std::size_t next = 0;  // checkpoint
  const auto assign_up_to = [&](std::int64_t step) {
    for (; next < all.size() && all[next].step < step; ++next) {
      all[next].loss = newest.loss;
      all[next].metric = newest.metric;
      all[next].score = newest.score;
    }
  };
  while (std::getline(log, text)) {
    const auto line = nlohmann::json::parse(text, nullptr, false);
    if (!line.is_object()) continue;
    const auto step = line.find("step");
    if (step == line.end() || !step->is_number_integer()) continue;
    assign_up_to(step->get<std::int64_t>());
    update(newest, line, validated);
  }
  assign_up_to(all.back().step + 1);
  return all;
}

}  // namespace nunchi
