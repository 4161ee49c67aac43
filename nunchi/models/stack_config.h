// The options of a stack of Transformer layers, shared by all Transformer families. The defaults
// are the paper's base model.
#pragma once

#include <array>
#include <initializer_list>

#include "nunchi/models/typed_config.h"
#include "nunchi/nn/blocks.h"
#include "nunchi/nn/embedding.h"

namespace nunchi {

struct StackConfig {
  std::int64_t width = 512;  // d_model
  int heads = 8;
  std::int64_t feed_forward = 2048;
  nn::NormPlacement norm_placement = nn::NormPlacement::post;
  NormKind norm = NormKind::layer;
  ActivationKind activation = ActivationKind::relu;
  nn::PositionKind position = nn::PositionKind::sinusoidal;
  std::int64_t max_positions = 1024;  // number of learned positions
  float dropout = 0.1f;
  float attention_dropout = 0;
  float activation_dropout = 0;
  int kv_heads = 0;              // heads of keys and values; 0: as many as heads
  std::int64_t head_width = 0;   // 0: width / heads
  bool bias = true;              // whether linear layers have a bias
  double norm_epsilon = 1e-5;    // added to a norm's variance
  bool scale_embeddings = true;  // embeddings are multiplied by √width
  bool scale_attention = true;   // scores are divided by √head_width
  // Parts that an experiment leaves out (nn/residual.h, nn/blocks.h).
  bool residual_connections = true;
  bool normalize = true;
  bool look_ahead_mask = true;
  double rotary_base = 10000;
  nn::RelativeKind relative_kind = nn::RelativeKind::t5;
  int relative_buckets = 32;
  int relative_max_distance = 128;

  // max_positions for learned positions; unlimited for other kinds.
  std::int64_t max_length() const;
  // Why an option of the stack has no effect; empty if it has one.
  std::string why_unused_in_stack(std::string_view key) const;

  using AttentionMask = nn::AttentionMask;  // which tokens a token of the stack attends to
  nn::BlockConfig block(AttentionMask mask = AttentionMask::none) const;
  nn::Embedding::Options embedding_options() const;
  nn::PositionOptions position_options(AttentionMask mask) const;
  // The kernel requirements of a model whose stacks have these masks.
  FamilyConfig::KernelRequirements stack_requirements(
      std::initializer_list<AttentionMask> stack_masks) const;

 protected:
  // Calls `fail` for sizes that are out of range or contradict one another.
  void check_stack(const FailOption& fail, std::initializer_list<AttentionMask> stack_masks) const;
  // See FamilyConfig::function_options().
  void reset_stack_training_options();
  // Turns scale_embeddings on if positions are sinusoidal and the option is not given: sinusoids
  // have values up to 1, next to which unscaled embeddings would be negligible at first.
  void set_default_scale_embeddings(const OptionReader& given);

 private:
  void check_positions(const FailOption& fail,
                       std::initializer_list<AttentionMask> stack_masks) const;
};

namespace stack_options {

inline constexpr std::array kPlacements = {Choice{"post", nn::NormPlacement::post},
                                           Choice{"pre", nn::NormPlacement::pre}};
inline constexpr std::array kNorms = {Choice{"layer", NormKind::layer},
                                      Choice{"rms", NormKind::rms}};
inline constexpr std::array kActivations = {
    Choice{"relu", ActivationKind::relu}, Choice{"gelu", ActivationKind::gelu},
    Choice{"gelu_tanh", ActivationKind::gelu_tanh}, Choice{"swiglu", ActivationKind::swiglu},
    Choice{"geglu", ActivationKind::geglu}};
inline constexpr std::array kPositions = {Choice{"none", nn::PositionKind::none},
                                          Choice{"sinusoidal", nn::PositionKind::sinusoidal},
                                          Choice{"learned", nn::PositionKind::learned},
                                          Choice{"rotary", nn::PositionKind::rotary},
                                          Choice{"relative", nn::PositionKind::relative},
                                          Choice{"alibi", nn::PositionKind::alibi}};
inline constexpr std::array kRelativeKinds = {Choice{"t5", nn::RelativeKind::t5},
                                              Choice{"clipped", nn::RelativeKind::clipped}};

inline constexpr std::int64_t kMaxWidth = 1 << 16;
inline constexpr std::int64_t kMaxLayers = 1 << 10;
inline constexpr std::int64_t kMaxHeads = 256;  // dropout's random counter distinguishes this many
inline constexpr std::int64_t kMaxBuckets = 1 << 16;
inline constexpr double kMaxRotaryBase = 1e12;

// The fields in the order of config.json. A family has other fields before, between and after
// these.
void visit_layers(auto& visitor, auto& config) {
  visitor.integer("width", config.width, 1, kMaxWidth);
  visitor.integer("heads", config.heads, 1, kMaxHeads);
  visitor.integer("feed_forward", config.feed_forward, 1, 4 * kMaxWidth);
  visitor.choice("norm_placement", config.norm_placement, kPlacements);
  visitor.choice("norm", config.norm, kNorms);
  visitor.choice("activation", config.activation, kActivations);
  visitor.integer("kv_heads", config.kv_heads, 0, kMaxHeads);
  visitor.integer("head_width", config.head_width, 0, kMaxWidth);
  visitor.flag("bias", config.bias);
  visitor.positive("norm_epsilon", config.norm_epsilon);
  visitor.flag("scale_embeddings", config.scale_embeddings);
  visitor.flag("scale_attention", config.scale_attention);
  visitor.flag("residual_connections", config.residual_connections);
  visitor.flag("normalize", config.normalize);
}

void visit_dropouts(auto& visitor, auto& config) {
  visitor.fraction("dropout", config.dropout);
  visitor.fraction("attention_dropout", config.attention_dropout);
  visitor.fraction("activation_dropout", config.activation_dropout);
}

void visit_positions_and_dropouts(auto& visitor, auto& config) {
  visitor.choice("position", config.position, kPositions);
  visitor.integer("max_positions", config.max_positions, 1, kMaxVocabulary);
  visit_dropouts(visitor, config);
  visitor.number("rotary_base", config.rotary_base, 1, kMaxRotaryBase);
  visitor.choice("relative_kind", config.relative_kind, kRelativeKinds);
  visitor.integer("relative_buckets", config.relative_buckets, 2, kMaxBuckets);
  visitor.integer("relative_max_distance", config.relative_max_distance, 1, kMaxBuckets);
}

}  // namespace stack_options
}  // namespace nunchi
