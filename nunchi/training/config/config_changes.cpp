#include "nunchi/training/config/config_changes.h"

#include <algorithm>
#include <utility>

#include "nunchi/base/option_tree.h"

namespace nunchi {
namespace {

// The full key and the value of each scalar in a tree.
using Scalars = std::vector<std::pair<std::string, std::string>>;

void collect(const OptionValue& value, const std::string& key, Scalars& found) {
  const bool list = value.kind == OptionValue::Kind::list;
  if (!list && value.kind != OptionValue::Kind::map) {
    found.emplace_back(key, value.text);
    return;
  }
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    const OptionValue& item = value.items[i];
    if (list) {
      collect(item, key + "[" + std::to_string(i) + "]", found);
    } else {
      collect(item, key.empty() ? item.key : key + "." + item.key, found);
    }
  }
}

Scalars scalars_of(const Options& options) {
  Scalars found;
  collect(options.root(), "", found);
  return found;
}

std::string value_in(const Scalars& scalars, const std::string& key) {
  const auto found = std::ranges::find(scalars, key, &Scalars::value_type::first);
  return found == scalars.end() ? "not set" : found->second;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> config_values(const TrainConfig& config) {
  return scalars_of(Options::from_yaml(to_yaml(config), "the config"));
}

std::vector<ConfigChange> config_changes(const std::filesystem::path& checkpoint,
                                         const TrainConfig& config) {
  const std::filesystem::path file = checkpoint / "config.yaml";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return {};
  const Scalars old_values = scalars_of(Options::read_yaml(file));
  const Scalars new_values = config_values(config);
  std::vector<ConfigChange> changes;
  for (const auto& [key, value] : new_values) {
    const std::string old_value = value_in(old_values, key);
    if (old_value != value) changes.push_back({key, old_value, value});
  }
  for (const auto& [key, value] : old_values) {
    if (std::ranges::find(new_values, key, &Scalars::value_type::first) != new_values.end())
      continue;
    changes.push_back({key, value, value_in(new_values, key)});
  }
  return changes;
}

}  // namespace nunchi
