// Averages the weights of checkpoints. The mean usually translates better than each checkpoint.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nunchi/models/format/safetensors.h"
#include "nunchi/nn/parameters.h"

namespace nunchi {

// The means of the weights of several models, in memory.
class ModelMean {
 public:
  // The weights are summed in f64 in the order of `folders`. Throws Error when there is no folder,
  // or when a folder's model computes another function of its weights or has other labels or other
  // tokenizers than the first.
  // `weights_file` is the name of the file with the weights in each folder.
  explicit ModelMean(std::vector<std::filesystem::path> folders,
                     const std::string& weights_file = "model.safetensors");

  // Sets f32 weights. The parameters must be those of the folders' models.
  void copy_to(nn::Parameters& parameters) const;
  // Writes a model folder. The files beside the weights (config.json, tokenizers,
  // generation_config.json) are copied from the first folder. A new folder appears whole or not at
  // all; an existing one keeps its other files.
  void save(const std::filesystem::path& out) const;

 private:
  std::vector<std::filesystem::path> folders_;
  std::vector<std::vector<float>> means_;  // owns the bytes of entries_
  std::vector<SafetensorsEntry> entries_;
};

}  // namespace nunchi
