// T5, the text-to-text Transformer: Transformer with relative positions, RMSNorm before each
// sub-layer, no biases, and scores and embeddings that nobody scales. The defaults are t5-small's.
//
// In version 1.0 one table serves embeddings and vocabulary, and what the vocabulary sees is
// divided by √C; in 1.1 the vocabulary has a table of its own, and the feed-forward is gated.
#pragma once

#include "nunchi/models/transformer.h"

namespace nunchi {

struct T5Config final : TransformerConfig {
  static constexpr const char* kFamily = "t5";
  static constexpr std::array<std::string_view, 5> kPresets = {"t5-tiny", "t5-small", "t5-base",
                                                               "t5-v1.1-small", "t5-v1.1-base"};

  T5Config();

  // Throws UsageError for another name.
  static T5Config preset(const std::string& name, std::int64_t vocabulary);

  std::string family() const override { return kFamily; }
  std::unique_ptr<Model> make(const Vocabularies& vocabularies) const override;
  void write_training_options(OptionWriter& out) const override;

  std::string to_json() const;
  static T5Config from_json(const std::string& text, const std::string& where);
  static T5Config from_options(OptionReader& in);
  static T5Config from_training_options(OptionReader& in);
};

class T5 final : public Transformer {
 public:
  using Config = T5Config;

  explicit T5(const T5Config& config) : Transformer(config), config_json_(config.to_json()) {}

  std::string family() const override { return Config::kFamily; }
  std::string config_json() const override { return config_json_; }

 private:
  std::string config_json_;
};

}  // namespace nunchi
