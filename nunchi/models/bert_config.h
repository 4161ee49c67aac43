// The options of a bidirectional encoder, with BERT base as defaults.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nunchi/models/stack_config.h"

namespace nunchi {

struct BertConfig final : StackConfig {
  static constexpr const char* kFamily = "bert";
  static constexpr std::array<std::string_view, 2> kPresets = {"bert-base", "bert-small"};

  std::int64_t target_vocabulary = 30522;  // "vocabulary" in config.json
  int layers = 12;
  // Of the classes that it has been taught to tell apart; empty: none.
  std::vector<std::string> labels;

  BertConfig();

  // The shapes that people know by name. Throws UsageError for another.
  static BertConfig preset(const std::string& name, std::int64_t vocabulary);

  std::string family() const override { return kFamily; }
  std::unique_ptr<Model> make(const Vocabularies& vocabularies) const override;
  void write_training_options(OptionWriter& out) const override;
  ObjectiveKind objective() const override { return ObjectiveKind::masked; }
  std::string one_vocabulary() const override;
  Needs needs() const override { return needs_of({Sees::all}); }
  ModelConfig with_labels(const std::vector<std::string>& labels) const override;

  // config.json's text, both ways; see TransformerConfig.
  std::string to_json() const;
  static BertConfig from_json(const std::string& text, const std::string& where);
  static BertConfig from_options(OptionReader& in);
  static BertConfig from_training_options(OptionReader& in);

  // Throws Error with `where` when sizes do not fit together or are absurd.
  void check(const std::string& where) const;

  // See models/family_options.h.
  static void vocabularies(auto& in, auto& config);
  static void shape(auto& in, auto& config);
};

}  // namespace nunchi
