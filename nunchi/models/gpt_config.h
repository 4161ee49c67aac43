// The options of a causal language model, with GPT-2 (124 million parameters) as defaults.
#pragma once

#include <string>
#include <string_view>

#include "nunchi/models/stack_config.h"

namespace nunchi {

struct GptConfig final : StackConfig {
  static constexpr const char* kFamily = "gpt";
  static constexpr std::array<std::string_view, 2> kPresets = {"gpt2", "small"};

  std::int64_t target_vocabulary = 50257;  // "vocabulary" in config.json
  int layers = 12;
  bool tied_embeddings = true;  // the table that reads tokens also says them

  GptConfig();

  // The shapes that people know by name: gpt2, and one for characters on a small machine. Throws
  // UsageError for another.
  static GptConfig preset(const std::string& name, std::int64_t vocabulary);

  std::string family() const override { return kFamily; }
  std::unique_ptr<Model> make(const Vocabularies& vocabularies) const override;
  void write_training_options(OptionWriter& out) const override;
  ObjectiveKind objective() const override { return ObjectiveKind::causal; }
  std::string one_vocabulary() const override;
  Needs needs() const override { return needs_of({Sees::past}); }

  // config.json's text, both ways; see TransformerConfig.
  std::string to_json() const;
  static GptConfig from_json(const std::string& text, const std::string& where);
  static GptConfig from_options(OptionReader& in);
  static GptConfig from_training_options(OptionReader& in);

  // Throws Error with `where` when sizes do not fit together or are absurd.
  void check(const std::string& where) const;
  // A layer of the stack: causal.
  nn::BlockConfig block() const;

  // See models/family_options.h.
  static void vocabularies(auto& in, auto& config);
  static void shape(auto& in, auto& config);
};

}  // namespace nunchi
