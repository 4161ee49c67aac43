// Free running (scheduled sampling, Bengio et al. 2015): during training, the decoder reads its own
// predictions at some target positions in place of the true tokens.
#pragma once

#include "nunchi/models/sequence_model.h"

namespace nunchi {

struct FreeRunning {
  float probability = 0;  // of reading a prediction, for each target position
  std::uint32_t operation =
      0;  // the operation's number for random draws (Parameters::next_operation_id)
};

// The targets of the batch with random tokens, never the first of a sentence, replaced by the
// model's likeliest token given all tokens that it has read before. The predictions are made step
// by step in evaluating mode and are not recorded, so gradients do not flow through the choice of
// tokens.
TokenBatch free_running_target(const TranslationModel& model, const PairBatch& batch,
                               const FreeRunning& options);

}  // namespace nunchi
