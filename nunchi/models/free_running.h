// Free running (scheduled sampling, Bengio et al. 2015): during training, the decoder reads its own
// predictions at some target positions in place of the true tokens.
#pragma once

#include "nunchi/models/sequence_model.h"

namespace nunchi {

struct FreeRunning {
  float share = 0;           // of the target positions at which it reads its own prediction
  std::uint32_t number = 0;  // of the operation, for random draws (nn::Parameters::next_place)
};

// The targets of the batch with a random share of their tokens, never the first, replaced by the
// model's likeliest token after everything that it has read before. The predictions are made step
// by step in evaluating mode; gradients flow through the tokens that are read, not through their
// choice.
TokenBatch free_running_target(const TranslationModel& model, const PairBatch& batch,
                               const FreeRunning& options);

}  // namespace nunchi
