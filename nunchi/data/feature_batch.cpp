#include "nunchi/data/feature_batch.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "nunchi/base/error.h"
#include "nunchi/ops/tensors.h"

namespace nunchi {

FeatureBatch make_feature_batch(ContextBase& context, std::span<const Features> examples,
                                std::int64_t width, std::int32_t first_sentence) {
  std::vector<std::int32_t> lengths, indices(examples.size());
  std::vector<float> all_values;
  for (const Features& example : examples) {
    if (example.width != width || std::ssize(example.values) % width != 0) {
      throw Error("the features have width " + std::to_string(example.width) + ", but width " +
                  std::to_string(width) + " is expected.");
    }
    if (!std::ranges::all_of(example.values, [](float value) { return std::isfinite(value); })) {
      throw Error("the features contain a number that is not finite.");
    }
    lengths.push_back(static_cast<std::int32_t>(example.rows()));
    all_values.insert(all_values.end(), example.values.begin(), example.values.end());
  }
  std::iota(indices.begin(), indices.end(), first_sentence);
  FeatureBatch batch;
  batch.rows = make_ragged(context, lengths, indices);
  all_values.resize(static_cast<std::size_t>(batch.rows.capacity * width), 0.0f);
  batch.values = from_host(context, all_values, {batch.rows.capacity, width});
  return batch;
}

}  // namespace nunchi
