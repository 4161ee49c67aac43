// A model on disk: a folder in the Hugging Face convention.
//
//   config.json          the family and its options, all of them
//   model.safetensors    the parameters by name, f32 (f64 and bf16 are read too)
//
// Nothing in it is executable, and nothing in it is trusted: every size and offset is checked
// before memory is taken.
#pragma once

#include <filesystem>
#include <memory>

#include "nunchi/models/model.h"

namespace nunchi {

// Writes each file under a temporary name, syncs and renames it: a reader sees the old file or the
// new one, whole. The folder is made if it is missing. f64 parameters stay f64.
void save_model(const Model& model, const std::filesystem::path& folder);

// The model with its parameters, in `memory.dtype`. Throws Error naming what is missing, surplus or
// of another shape.
std::unique_ptr<Model> load_model(const std::filesystem::path& folder, ContextBase& context,
                                  const nn::Parameters::Memory& memory = {});

// The options in the folder's config.json; no other file is read.
ModelConfig load_config(const std::filesystem::path& folder);

// load_model() in two steps, for callers that check the model before its weights are read.
//
// The model of the options in config.json, not allocated.
std::unique_ptr<Model> configured_model(const std::filesystem::path& folder);
// Allocates the parameters of such a model and reads them from the same folder.
void load_weights(Model& model, const std::filesystem::path& folder, ContextBase& context,
                  const nn::Parameters::Memory& memory = {});

// The model that the folder describes, checked against its weights' names and shapes but without
// their values: what `nunchi info` needs.
struct ModelDescription {
  std::unique_ptr<Model> model;  // not allocated
  std::uintmax_t file_bytes = 0;
};
ModelDescription describe_model(const std::filesystem::path& folder);

}  // namespace nunchi
