// The options of a bidirectional encoder, with BERT base as defaults.
#pragma once

#include <string>
#include <vector>

#include "nunchi/models/stack_config.h"

namespace nunchi {

struct BertConfig : StackConfig {
  std::int64_t target_vocabulary = 30522;  // "vocabulary" in config.json
  int layers = 12;
  std::vector<std::string> labels;  // the class names; empty: no classifier

  BertConfig();

  // See models/described_config.h.
  std::vector<ObjectiveKind> objectives() const {
    return {ObjectiveKind::masked, ObjectiveKind::classification};
  }
  std::string shared_vocabulary_reason() const {
    return "a bert fills in the tokens that it reads";
  }
  FamilyConfig::KernelRequirements kernel_requirements() const {
    return stack_requirements({AttentionMask::none});
  }
  void check(const FailOption& fail) const;
  std::string why_unused(std::string_view key) const { return why_unused_in_stack(key); }
  void take_defaults(const OptionReader& given) { set_default_scale_embeddings(given); }
  void reset_training_and_task_options();
};

// The result is also a ClassifierConfig.
std::shared_ptr<const FamilyConfig> make_family_config(BertConfig config);
Family bert_family();  // the registry's entry

}  // namespace nunchi
