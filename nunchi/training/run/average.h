// Averages the weights of checkpoints. The mean usually translates better than each checkpoint.
#pragma once

#include <filesystem>
#include <span>

namespace nunchi {

// Saves in `out` a model whose weights are the means of those in `folders`, summed in f64 in the
// given order. The other files of a model folder (config.json, tokenizers, generation_config.json)
// are copied from the first. A new folder appears whole or not at all; an existing one keeps
// its other files. Throws Error, before anything is written, when a folder's model computes another
// function of its weights or has other labels or other tokenizers than the first.
void average_models(std::span<const std::filesystem::path> folders,
                    const std::filesystem::path& out);

}  // namespace nunchi
