// The options of a bidirectional encoder, with BERT base as defaults.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "nunchi/models/stack_config.h"

namespace nunchi {

class Bert;

struct BertConfig final : FamilyOptions<BertConfig, StackConfig> {
  static constexpr const char* kFamily = "bert";
  using Made = Bert;

  std::int64_t target_vocabulary = 30522;  // "vocabulary" in config.json
  int layers = 12;
  // Of the classes that it has been taught to tell apart; empty: none.
  std::vector<std::string> labels;

  BertConfig();

  static std::span<const Preset<BertConfig>> presets();

  std::vector<ObjectiveKind> objectives() const override {
    return {ObjectiveKind::masked, ObjectiveKind::classification};
  }
  std::string one_vocabulary() const override;
  Needs needs() const override { return needs_of({Sees::all}); }
  std::vector<std::string> named_labels() const override { return labels; }
  ModelConfig with_labels(const std::vector<std::string>& labels) const override;

  void take_defaults(const OptionReader& in) { scale_beside_waves(in); }
  // Calls `fail` when sizes do not fit together or are absurd.
  void check(const FailOption& fail) const;
  void keep_function();

  // See models/family_options.h.
  static void vocabularies(auto& in, auto& config);
  static void shape(auto& in, auto& config);
};

}  // namespace nunchi
