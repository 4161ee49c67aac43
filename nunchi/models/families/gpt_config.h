// The options of a causal language model, with GPT-2 (124 million parameters) as defaults.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "nunchi/models/stack_config.h"

namespace nunchi {

class Gpt;

struct GptConfig final : FamilyOptions<GptConfig, StackConfig> {
  static constexpr const char* kFamily = "gpt";
  using Made = Gpt;

  std::int64_t target_vocabulary = 50257;  // "vocabulary" in config.json
  int layers = 12;
  bool tied_embeddings = true;  // the table that reads tokens also says them

  GptConfig();

  // gpt2, and one for characters on a small machine.
  static std::span<const Preset<GptConfig>> presets();

  std::vector<ObjectiveKind> objectives() const override { return {ObjectiveKind::causal}; }
  std::string one_vocabulary() const override;
  Needs needs() const override { return needs_of({Sees::past}); }

  void take_defaults(const OptionReader& in) { scale_beside_waves(in); }
  // Calls `fail` when sizes do not fit together or are absurd.
  void check(const FailOption& fail) const;
  // A layer of the stack: its tokens see the past.
  nn::BlockConfig block() const;

  // See models/family_options.h.
  static void vocabularies(auto& in, auto& config);
  static void shape(auto& in, auto& config);
};

}  // namespace nunchi
