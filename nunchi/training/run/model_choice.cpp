#include "nunchi/training/run/model_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "nunchi/base/error.h"
#include "nunchi/base/random_access_file.h"
#include "nunchi/training/validation_scores.h"

namespace nunchi {
namespace {

using Json = nlohmann::ordered_json;
using Kind = ModelCandidate::Kind;

constexpr std::array kKinds = {Choice{"mean", Kind::mean}, Choice{"step", Kind::step},
                               Choice{"ema", Kind::ema}};

std::vector<std::int64_t> ascending(std::vector<std::int64_t> steps) {
  std::ranges::sort(steps);
  return steps;
}

std::string name_of(const ModelCandidate& candidate) {
  switch (candidate.kind) {
    case Kind::mean:
      return fmt::format("the mean of steps {}", fmt::join(ascending(candidate.steps), ", "));
    case Kind::ema:
      return fmt::format("the moving average at step {}", candidate.steps.front());
    case Kind::step:
      break;
  }
  return fmt::format("step {}", candidate.steps.front());
}

Json candidate_json(const ModelCandidate& candidate) {
  Json json = {{"kind", choice_name(kKinds, candidate.kind)},
               {"steps", ascending(candidate.steps)}};
  if (candidate.score) json["score"] = *candidate.score;
  return json;
}

// Throws nlohmann's exceptions and Error, both without the name of the file.
ModelCandidate candidate_of(const Json& json) {
  const auto kind = json.at("kind").get<std::string>();
  const auto found = std::ranges::find(kKinds, kind, &Choice<Kind>::name);
  ModelCandidate candidate{.steps = json.at("steps").get<std::vector<std::int64_t>>()};
  if (found == kKinds.end() || candidate.steps.empty()) throw Error("unknown kind or no steps");
  candidate.kind = found->value;
  if (const auto score = json.find("score"); score != json.end()) {
    candidate.score = score->is_null() ? NAN : score->get<double>();
  }
  return candidate;
}

ModelChoice choice_of(const Json& json) {
  ModelChoice choice{.chosen = candidate_of(json)};
  if (const auto metric = json.find("metric"); metric != json.end()) {
    const auto name = metric->get<std::string>();
    const auto found = std::ranges::find(kValidationMetrics, name, &Choice<ValidationMetric>::name);
    if (found == kValidationMetrics.end()) throw Error("unknown metric");
    choice.metric = found->value;
  }
  if (const auto others = json.find("others"); others != json.end()) {
    for (const Json& other : *others) choice.others.push_back(candidate_of(other));
  }
  return choice;
}

}  // namespace

std::string to_text(const ModelChoice& choice) {
  std::string text = name_of(choice.chosen);
  const auto metric = choice.metric;
  if (metric && choice.chosen.score) {
    text +=
        fmt::format(": {} {}", display_name(*metric), score_text(*metric, *choice.chosen.score));
  }
  std::string others;
  for (const ModelCandidate& other : choice.others) {
    if (!metric || !other.score) continue;
    others +=
        fmt::format("{}{}{}: {}", others.empty() ? "" : "; ", name_of(other),
                    other.kind == Kind::step ? " alone" : "", score_text(*metric, *other.score));
  }
  return others.empty() ? text : text + " (" + others + ")";
}

std::string to_json(const ModelChoice& choice) {
  Json json = candidate_json(choice.chosen);
  if (choice.metric) json["metric"] = choice_name(kValidationMetrics, *choice.metric);
  for (const ModelCandidate& other : choice.others) json["others"].push_back(candidate_json(other));
  return json.dump();
}

std::optional<ModelChoice> read_model_choice(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "run.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  const Json json = Json::parse(read_small_file(path), nullptr, false);
  const auto model = json.is_object() ? json.find("model") : json.end();
  if (!json.is_object() || model == json.end()) return std::nullopt;
  try {
    return choice_of(*model);
  } catch (const std::exception&) {
    throw Error(path.string() + ": its 'model' does not describe a choice among checkpoints.");
  }
}

}  // namespace nunchi
