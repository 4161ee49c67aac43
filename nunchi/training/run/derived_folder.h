// A model folder made from another one: new weights beside copies of its other files.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

namespace nunchi {

// The names of the files beside the weights of a model folder: config.json, tokenizers,
// generation_config.json.
std::vector<std::filesystem::path> companion_files(const std::filesystem::path& folder);

// Copies the companion files of `source` and calls write(folder) for the weights. A new folder
// appears whole or not at all; an existing one keeps its other files. The files that `write` writes
// replace copies of the same name.
void write_derived_folder(const std::filesystem::path& source, const std::filesystem::path& out,
                          const std::function<void(const std::filesystem::path& folder)>& write);

}  // namespace nunchi
