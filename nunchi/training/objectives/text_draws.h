// Randomness of the objectives that change texts: masking and span corruption.
#pragma once

#include "nunchi/base/random.h"
#include "nunchi/training/objectives/objective.h"

namespace nunchi {

// Identifies the random draws for one text (base/random.h).
struct TextDraws {
  RandomKey key;
  std::uint32_t sentence = 0;
};

// The draws for text i of a batch. In training mode they depend on the step's key and on the text's
// index in the step; otherwise only on the text's index in the data, so that every validation
// changes the text in the same way.
inline TextDraws draws_for(const ContextBase& context, const HostBatch& batch, std::size_t i,
                           std::int32_t first_sentence) {
  if (!context.is_training()) {
    return {.key = {}, .sentence = static_cast<std::uint32_t>(batch.pairs[i])};
  }
  return {.key = context.host_random_key(),
          .sentence = static_cast<std::uint32_t>(first_sentence) + static_cast<std::uint32_t>(i)};
}

}  // namespace nunchi
