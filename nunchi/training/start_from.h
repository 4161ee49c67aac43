// Checks for a run that continues with existing weights: those of its own checkpoint or those of
// another model. The weights have to mean the same in both.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nunchi/models/format/tokenizers.h"
#include "nunchi/models/model.h"
#include "nunchi/training/config/train_config.h"

namespace nunchi {

// Throw Error when the other model computes another function of the same weights, or has other
// labels. `cannot` is the beginning of the message, `whose` names the model in it: "the run's".
void check_same_function(const std::string& cannot, const ModelConfig& other,
                         const ModelConfig& model, const std::string& whose);
void check_same_labels(const std::string& cannot, const ModelConfig& other,
                       const ModelConfig& model, const std::string& whose);

// Throws Error when the run's model computes another function than the checkpoint's, has other
// labels, or when the config asks for other tokenizers.
void check_resumed(const std::filesystem::path& checkpoint, const TrainConfig& config,
                   const ModelConfig& model);

// Copies the weights of the folder's model. Returns a note for the user about parameters that keep
// their random weights; empty if there are none. Throws Error when that model computes another
// function or was trained with other tokenizers than the run's.
std::string start_from(const std::filesystem::path& folder, const Tokenizers& tokenizers,
                       Model& model);

// How a model's tokenizers differ from the run's, as a clause; empty if they do not.
std::string tokenizer_difference(const Tokenizers& model, const Tokenizers& run);

}  // namespace nunchi
