// The tokenizers of a run: read from files, taken from another model, or learned.
#pragma once

#include <functional>
#include <string>

#include "nunchi/models/format/tokenizers.h"
#include "nunchi/text/learn_tokenizer.h"
#include "nunchi/training/communicator.h"
#include "nunchi/training/config/train_config.h"

namespace nunchi {

struct RunTokenizerOptions {
  std::function<void(const std::string&)> note;  // receives messages for the user; may be empty
  LearnHooks learning;
};

// The tokenizers that a config asks for: existing files, those of the model that the run starts
// from, or new ones learned from the training data.
Tokenizers make_tokenizers(const TrainConfig& config, const RunTokenizerOptions& options);

// Calls `make` on the leader only and returns the leader's tokenizers on every worker.
Tokenizers share_tokenizers(Communicator& communicator, const std::function<Tokenizers()>& make);

}  // namespace nunchi
