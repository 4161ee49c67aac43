// How a model is best asked to generate: generation_config.json of its folder, with the names that
// Hugging Face gives these options. Options that the file does not name keep their defaults. The
// file also holds the folder's special tokens (models/format/generation_tokens.h).
#pragma once

#include <cstdint>
#include <filesystem>

#include "nunchi/decoding/search_options.h"
#include "nunchi/models/format/generation_tokens.h"

namespace nunchi {

// Tokens that a model can be told to generate at most.
constexpr std::int64_t kLongestGeneration = 1 << 20;

// The defaults when the folder has no such file. Throws Error for one that is broken.
SearchOptions load_generation_config(const std::filesystem::path& folder);
void save_generation_config(const SearchOptions& options, const GenerationTokens& tokens,
                            const std::filesystem::path& folder);

}  // namespace nunchi
