// The options of a causal language model, with GPT-2 (124 million parameters) as defaults.
#pragma once

#include <string>
#include <vector>

#include "nunchi/models/stack_config.h"

namespace nunchi {

struct GptConfig : StackConfig {
  std::int64_t target_vocabulary = 50257;  // "vocabulary" in config.json
  int layers = 12;
  bool tied_embeddings = true;  // one table for embeddings and the vocabulary projection

  GptConfig();

  // See models/described_config.h.
  std::vector<ObjectiveKind> objectives() const { return {ObjectiveKind::causal}; }
  std::string shared_vocabulary_reason() const { return "a gpt reads the tokens that it writes"; }
  FamilyConfig::KernelRequirements kernel_requirements() const {
    return stack_requirements({AttentionMask::causal});
  }
  void check(const FailOption& fail) const;
  std::string why_unused(std::string_view key) const { return why_unused_in_stack(key); }
  void take_defaults(const OptionReader& given) { set_default_scale_embeddings(given); }
  void reset_training_and_task_options() { reset_stack_training_options(); }
};

std::shared_ptr<const FamilyConfig> make_family_config(GptConfig config);
Family gpt_family();  // the registry's entry

}  // namespace nunchi
