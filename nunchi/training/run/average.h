// The mean of several checkpoints' weights, which usually translates better than any one of them.
#pragma once

#include <filesystem>
#include <span>

namespace nunchi {

// Saves in `out` the model whose weights are the means of those in `folders`, summed in f64 in the
// given order. The rest of a model folder (config.json, tokenizers, generation_config.json) is the
// first one's. The folder appears whole or not at all; one that is there already keeps what else it
// holds. Throws Error, before anything is written, when a folder's model is another function of its
// weights, tells other labels apart or has other tokenizers than the first.
void average_models(std::span<const std::filesystem::path> folders,
                    const std::filesystem::path& out);

}  // namespace nunchi
