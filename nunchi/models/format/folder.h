// A model on disk: a folder in the Hugging Face convention.
//
//   config.json          the family and all its options
//   model.safetensors    the parameters by name, f32 (f64 and bf16 are read too), or weights of 8
//                        bits (models/format/int8_tensors.h)
//
// Nothing in it is executable, and nothing in it is trusted: every size and offset is checked
// before memory is allocated.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "nunchi/models/model.h"

namespace nunchi {

// Writes each file under a temporary name, syncs and renames it, so a reader sees either the whole
// old file or the whole new one. Makes the folder if it is missing. f64 parameters stay f64.
void save_model(const Model& model, const std::filesystem::path& folder);

// The model with its parameters, in `memory.dtype`. Throws an Error that names the first tensor
// that is missing, unknown or of another shape.
std::unique_ptr<Model> load_model(const std::filesystem::path& folder, ContextBase& context,
                                  const nn::Parameters::Memory& memory = {});

// The options in the folder's config.json; no other file is read.
ModelConfig load_config(const std::filesystem::path& folder);

// load_model() in two steps, for callers that check the model before its weights are read.
//
// The model that config.json describes, without memory for its parameters.
std::unique_ptr<Model> configured_model(const std::filesystem::path& folder);
// Allocates the parameters of such a model and reads them from the same folder.
void load_weights(Model& model, const std::filesystem::path& folder, ContextBase& context,
                  const nn::Parameters::Memory& memory = {});

// The model that the folder describes, checked against the names and shapes of its weights, whose
// values are not read.
struct ModelDescription {
  std::unique_ptr<Model> model;  // not allocated
  std::uintmax_t file_bytes = 0;
  std::vector<std::string> int8 = {};  // the names of the parameters that are stored as int8
};
ModelDescription describe_model(const std::filesystem::path& folder);

}  // namespace nunchi
