// Examples made of rows of features (frames of sound, patches of an image) on a device, one example
// after another without padding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nunchi/tensor/ragged.h"

namespace nunchi {

// The features of one example on the host: rows of `width` numbers each.
struct Features {
  std::int64_t width = 0;     // F
  std::vector<float> values;  // [rows, F]

  std::int64_t rows() const { return width == 0 ? 0 : std::ssize(values) / width; }
};

struct FeatureBatch {
  Ragged rows;
  Tensor values;  // f32 [capacity, F]; zero past the real rows

  std::int64_t width() const { return values.size(1); }  // F
};

// See make_token_batch for `first_sentence`. Throws Error when an example has another width or a
// number that is not finite.
FeatureBatch make_feature_batch(ContextBase& context, std::span<const Features> examples,
                                std::int64_t width, std::int32_t first_sentence = 0);

}  // namespace nunchi
