// The special tokens of a model folder: the ids in generation_config.json, under Hugging Face's
// keys. For a missing id, the target tokenizer's is used.
#pragma once

#include <filesystem>

#include "nunchi/base/options.h"
#include "nunchi/text/tokens.h"

namespace nunchi {

inline constexpr const char* kGenerationConfig = "generation_config.json";

struct GenerationTokens {
  std::int32_t begin = kNoToken;          // bos_token_id
  std::int32_t end = kNoToken;            // eos_token_id
  std::int32_t pad = kNoToken;            // pad_token_id
  std::int32_t decoder_start = kNoToken;  // decoder_start_token_id
  std::int32_t forced_first = kNoToken;   // forced_bos_token_id
  Tokens suppressed = {};                 // suppress_tokens

  bool operator==(const GenerationTokens&) const = default;

  static void visit_fields(auto& visitor, auto& tokens) {
    visitor.optional_integer("bos_token_id", tokens.begin, 0, kMaxToken, kNoToken);
    visitor.optional_integer("eos_token_id", tokens.end, 0, kMaxToken, kNoToken);
    visitor.optional_integer("pad_token_id", tokens.pad, 0, kMaxToken, kNoToken);
    visitor.optional_integer("decoder_start_token_id", tokens.decoder_start, 0, kMaxToken,
                             kNoToken);
    visitor.optional_integer("forced_bos_token_id", tokens.forced_first, 0, kMaxToken, kNoToken);
    visitor.integers("suppress_tokens", tokens.suppressed, 0, kMaxToken);
  }

 private:
  static constexpr std::int64_t kMaxToken = (std::int64_t{1} << 31) - 1;
};

// The decoder's special tokens: the given ids, and the target tokenizer's where none is given.
DecoderTokens decoder_tokens(const GenerationTokens& given, SpecialTokens target);

// The ids of a folder's generation_config.json; all kNoToken if it has no such file. Throws Error
// for a file that is broken.
GenerationTokens load_generation_tokens(const std::filesystem::path& folder);

}  // namespace nunchi
