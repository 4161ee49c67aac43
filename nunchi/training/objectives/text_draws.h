// The random draws that change a text before a model learns from it.
#pragma once

#include "nunchi/base/random.h"
#include "nunchi/training/objectives/objective.h"

namespace nunchi {

struct TextDraws {
  RandomKey key;
  std::uint32_t sentence = 0;
};

// For text i of a batch. In training mode by the step's key and the text's index in the step;
// otherwise by the text's own number, so that it is changed the same way whatever the batch.
inline TextDraws draws_for(const ContextBase& context, const HostBatch& batch, std::size_t i,
                           std::int32_t first_sentence) {
  if (!context.is_training()) {
    return {.key = {}, .sentence = static_cast<std::uint32_t>(batch.pairs[i])};
  }
  return {.key = context.random_key(),
          .sentence = static_cast<std::uint32_t>(first_sentence) + static_cast<std::uint32_t>(i)};
}

}  // namespace nunchi
