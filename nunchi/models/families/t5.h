// T5, the text-to-text Transformer: Transformer with relative positions, RMSNorm before each
// sub-layer, no biases, and scores and embeddings that nobody scales. The defaults are t5-small's.
//
// In version 1.0 one table serves embeddings and vocabulary, and what the vocabulary sees is
// divided by √C; in 1.1 the vocabulary has a table of its own, and the feed-forward is gated.
#pragma once

#include "nunchi/models/families/transformer.h"

namespace nunchi {

class T5;

struct T5Config final : FamilyOptions<T5Config, TransformerConfig> {
  static constexpr const char* kFamily = "t5";
  using Made = T5;

  T5Config();

  static std::span<const Preset<T5Config>> presets();
};

class T5 final : public Transformer {
 public:
  using Config = T5Config;

  explicit T5(const T5Config& config) : Transformer(config), config_(config) {}

  std::string family() const override { return Config::kFamily; }
  const T5Config& config() const override { return config_; }
  std::string config_json() const override { return config_.to_json(); }

 private:
  T5Config config_;
};

}  // namespace nunchi
