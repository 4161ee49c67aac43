// The search options that a model folder recommends: its generation_config.json, with Hugging
// Face's names. Options that the file does not name keep their defaults. The file also holds the
// folder's special tokens (models/format/generation_tokens.h), the heads that align words
// (models/format/alignment_heads.h), and typical_scores, with our own name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "nunchi/decoding/search_options.h"
#include "nunchi/decoding/typical_scores.h"
#include "nunchi/models/format/alignment_heads.h"
#include "nunchi/models/format/generation_tokens.h"

namespace nunchi {

// Upper limit of SearchOptions::min_length and max_length in a config, in tokens.
constexpr std::int64_t kMaxGenerationLength = 1 << 20;

// Returns the defaults if the folder has no such file. Throws Error if the file is invalid.
SearchOptions load_generation_config(const std::filesystem::path& folder);
// None if the folder has no such file or the file no such key. Throws Error if the file is invalid.
std::optional<TypicalScores> load_typical_scores(const std::filesystem::path& folder);
void save_generation_config(const SearchOptions& options, const GenerationTokens& tokens,
                            const std::filesystem::path& folder,
                            const std::optional<TypicalScores>& typical = std::nullopt);
// Writes the heads to the file and keeps its other keys.
void save_alignment_heads(const AlignmentHeads& heads, const std::filesystem::path& folder);

}  // namespace nunchi
