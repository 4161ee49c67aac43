// Checks for a run that starts from existing weights: those of its own checkpoint or those of
// another model. Both models must compute the same function of the weights.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nunchi/models/format/tokenizers.h"
#include "nunchi/models/model.h"
#include "nunchi/training/config/train_config.h"

namespace nunchi {

// Throw Error when `other` computes another function of the same weights than `model`, or has other
// labels. The message starts with `prefix`; `owner` is the possessive that stands for `model` in
// it, such as "the run's".
void check_same_function(const std::string& prefix, const ModelConfig& other,
                         const ModelConfig& model, const std::string& owner);
void check_same_labels(const std::string& prefix, const ModelConfig& other,
                       const ModelConfig& model, const std::string& owner);

// Throws Error when the run's model computes another function than the checkpoint's, has other
// labels, or when the config asks for other tokenizers.
void check_resumable(const std::filesystem::path& checkpoint, const TrainConfig& config,
                     const ModelConfig& model);

// Copies the weights of the folder's model into `model`. Returns a note for the user that names the
// parameters that keep their random weights; empty if there are none. Throws Error when the two
// models compute different functions or the folder has other tokenizers than the run.
std::string start_from(const std::filesystem::path& folder, const Tokenizers& tokenizers,
                       Model& model);

// A clause that says how a model's tokenizers differ from the run's; empty if they are equal.
std::string tokenizer_difference(const Tokenizers& model, const Tokenizers& run);

}  // namespace nunchi
