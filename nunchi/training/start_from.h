// Weights that a run goes on with: its own, some steps ago, or those of another model. The same
// weights have to mean the same.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nunchi/models/format/tokenizers.h"
#include "nunchi/models/model.h"
#include "nunchi/training/config/train_config.h"

namespace nunchi {

// The classes that a model tells apart; empty: none.
std::vector<std::string> labels_of(const Model& model);

// Throws Error when the same weights are another function in the other model, or tell other labels
// apart. `cannot` says what the other cannot be then, `whose` whose the model is: "the run's".
void check_same_function(const std::string& cannot, const Model& other, const Model& model,
                         const std::string& whose);
void check_same_labels(const std::string& cannot, const Model& other, const Model& model,
                       const std::string& whose);

// Throws Error when the run's model computes something else than the checkpoint's, has other
// labels, or is to have other tokenizers.
void check_resumed(const std::filesystem::path& checkpoint, const TrainConfig& config,
                   const Model& model);

// Copies the weights of the folder's model. Returns what is to be said about it: which parameters
// start anew; empty: none do. Throws Error when that model computes something else, or was trained
// with other tokenizers than the run's.
std::string start_from(const std::filesystem::path& folder, const Tokenizers& tokenizers,
                       Model& model);

// In what a model's tokenizers differ from the run's, as a clause; empty: in nothing.
std::string tokenizer_difference(const Tokenizers& model, const Tokenizers& run);

}  // namespace nunchi
