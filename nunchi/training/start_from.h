// Weights that a run goes on with: its own, some steps ago, or those of another model. The same
// weights have to mean the same.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nunchi/models/model.h"
#include "nunchi/models/tokenizers.h"

namespace nunchi {

// The classes that a model tells apart; empty: none.
std::vector<std::string> labels_of(const Model& model);

// Throws Error when the run's model computes something else than the checkpoint's, or has other
// labels.
void check_resumed(const std::filesystem::path& checkpoint, const Model& model);

// Copies the weights of the folder's model. Returns what is to be said about it: which parameters
// start anew; empty: none do. Throws Error when that model computes something else, or was trained
// with other tokenizers than the run's.
std::string start_from(const std::filesystem::path& folder, const Tokenizers& tokenizers,
                       Model& model);

// In what a model's tokenizers differ from the run's, as a clause; empty: in nothing.
std::string tokenizer_difference(const Tokenizers& model, const Tokenizers& run);

}  // namespace nunchi
