#include "nunchi/models/stack_config.h"

#include <algorithm>

namespace nunchi {

std::int64_t StackConfig::max_length() const {
  return position == nn::PositionKind::learned ? max_positions : kUnlimitedLength;
}

std::string StackConfig::why_unused_in_stack(std::string_view key) const {
  using Kind = nn::PositionKind;
  const auto reason_unless = [&](Kind kind) {
    return position == kind
               ? std::string()
               : "it applies to " + std::string(choice_name(stack_options::kPositions, kind)) +
                     " positions only, but 'position' is " +
                     std::string(choice_name(stack_options::kPositions, position));
  };
  // Options of experiments: a config has them only where they leave something out.
  if ((key == "residual_connections" && residual_connections) ||
      (key == "normalize" && normalize) || (key == "look_ahead_mask" && look_ahead_mask)) {
    return "nothing is left out";
  }
  if (key == "max_positions") return reason_unless(Kind::learned);
  if (key == "rotary_base") return reason_unless(Kind::rotary);
  if (key == "relative_buckets" && relative_kind == nn::RelativeKind::clipped) {
    return "'relative_kind' is clipped, which has one entry for each distance";
  }
  return key.starts_with("relative_") ? reason_unless(Kind::relative) : std::string();
}

void StackConfig::reset_stack_training_options() {
  const nn::AttentionConfig attention = block().attention(AttentionMask::none);
  dropout = attention_dropout = activation_dropout = 0;
  kv_heads = attention.kv_heads;
  head_width = attention.head_width;
}

void StackConfig::set_default_scale_embeddings(const OptionReader& given) {
  const bool sinusoidal = position == nn::PositionKind::sinusoidal;
  if (sinusoidal && !given.has("scale_embeddings")) scale_embeddings = true;
}

void StackConfig::check_stack(const FailOption& fail,
                              std::initializer_list<AttentionMask> stack_masks) const {
  constexpr std::int64_t kMaxHeads = stack_options::kMaxHeads;
  check_sizes(fail, {{"width", width},
                     {"heads", heads},
                     {"feed_forward", feed_forward},
                     {"max_positions", max_positions}});
  if (heads > kMaxHeads) {
    fail({"heads", "preset"},
         "must be at most " + std::to_string(kMaxHeads) + ", not " + std::to_string(heads));
  }
  if (head_width == 0 && width % heads != 0) {
    fail({"heads", "width", "preset"},
         "is " + std::to_string(heads) + ", but a width of " + std::to_string(width) +
             " cannot be divided into that many heads of equal width");
  }
  if (kv_heads < 0 || (kv_heads > 0 && heads % kv_heads != 0)) {
    fail({"kv_heads", "heads", "preset"},
         "is " + std::to_string(kv_heads) + ", but " + std::to_string(heads) +
             " heads cannot share that many heads of keys and values equally");
  }
  check_positions(fail, stack_masks);
}

void StackConfig::check_positions(const FailOption& fail,
                                  std::initializer_list<AttentionMask> stack_masks) const {
  const std::int64_t resolved_head_width = block().attention(AttentionMask::none).head_width;
  if (position == nn::PositionKind::rotary && resolved_head_width % 2 != 0) {
    fail({"position", "head_width", "width", "heads", "preset"},
         "is rotary, which rotates pairs of columns, so the head width must be even, not " +
             std::to_string(resolved_head_width));
  }
  if (position != nn::PositionKind::relative) return;
  for (const AttentionMask mask : stack_masks) {
    try {
      position_options(mask).relative.check();
    } catch (const Error& error) {
      std::string why = error.what();
      if (why.ends_with('.')) why.pop_back();
      fail({"relative_max_distance", "relative_buckets", "relative_kind", "position"},
           "contradicts 'relative_buckets': " + why);
    }
  }
}

FamilyConfig::KernelRequirements StackConfig::stack_requirements(
    std::initializer_list<AttentionMask> stack_masks) const {
  FamilyConfig::KernelRequirements required{.head_width =
                                                block().attention(AttentionMask::none).head_width};
  if (position != nn::PositionKind::relative) return required;
  for (const AttentionMask mask : stack_masks) {
    required.relative_buckets =
        std::max(required.relative_buckets, position_options(mask).relative.bucket_count());
  }
  return required;
}

nn::BlockConfig StackConfig::block(AttentionMask mask) const {
  nn::BlockConfig block{.width = width,
                        .heads = heads,
                        .hidden = feed_forward,
                        .placement = norm_placement,
                        .norm = norm,
                        .activation = activation,
                        .dropout = dropout,
                        .attention_dropout = attention_dropout,
                        .activation_dropout = activation_dropout,
                        .kv_heads = kv_heads,
                        .head_width = head_width,
                        .bias = bias,
                        .scale_attention = scale_attention,
                        .norm_epsilon = norm_epsilon,
                        .residual_connections = residual_connections,
                        .normalize = normalize,
                        .look_ahead_mask = look_ahead_mask};
  block.mask = mask;
  return block;
}

nn::Embedding::Options StackConfig::embedding_options() const {
  return {.width = width, .scaled = scale_embeddings, .dropout = dropout};
}

nn::PositionOptions StackConfig::position_options(AttentionMask mask) const {
  return {.kind = position,
          .width = width,
          .maximum = max_positions,
          .heads = heads,
          .head_width = block().attention(AttentionMask::none).head_width,
          .rotary_base = rotary_base,
          .relative = {.kind = relative_kind,
                       .buckets = relative_buckets,
                       .max_distance = relative_max_distance,
                       .bidirectional = mask == AttentionMask::none}};
}

}  // namespace nunchi
