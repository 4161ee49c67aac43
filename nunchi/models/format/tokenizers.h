// The tokenizers of a model folder: the files source and target, or one file, tokenizer, for both
// sides. Their names end with .spm (SentencePiece) or .tok (characters, bytes).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "nunchi/models/format/generation_tokens.h"
#include "nunchi/models/sequence_model.h"
#include "nunchi/text/tokenizer.h"

namespace nunchi {

class Tokenizers {
 public:
  // One tokenizer for both sides. Both constructors throw Error if an id of `tokens` is not in the
  // target's vocabulary.
  explicit Tokenizers(std::unique_ptr<Tokenizer> shared, GenerationTokens tokens = {});
  Tokenizers(std::unique_ptr<Tokenizer> source, std::unique_ptr<Tokenizer> target,
             GenerationTokens tokens = {});

  const Tokenizer& source() const { return *source_; }
  const Tokenizer& target() const { return target_ != nullptr ? *target_ : *source_; }
  bool shared() const { return target_ == nullptr; }
  // The special tokens of the decoder.
  const DecoderTokens& decoder() const { return decoder_; }
  // The special tokens of generation_config.json, which replace the tokenizers' ids.
  const GenerationTokens& generation_tokens() const { return generation_tokens_; }

  // Throws Error, naming `where`, if the model's vocabulary has another size.
  void check_fit(const Model& model, const std::string& where) const;

 private:
  std::unique_ptr<Tokenizer> source_, target_;
  GenerationTokens generation_tokens_;
  DecoderTokens decoder_;
};

// Whether the folder has a tokenizer, even if only one of two.
bool has_tokenizers(const std::filesystem::path& folder);
// The tokenizers with the special tokens of the folder's generation_config.json. Throws Error if
// the folder has no tokenizer, or only one of two.
Tokenizers load_tokenizers(const std::filesystem::path& folder);
// Each file appears whole or not at all. save_generation_config saves the generation_tokens().
void save_tokenizers(const Tokenizers& tokenizers, const std::filesystem::path& folder);

// The folder's file for the stem "tokenizer", "source" or "target"; empty if it has none.
std::filesystem::path tokenizer_file(const std::filesystem::path& folder, const std::string& stem);
// All names that a tokenizer's file can have in a model folder.
std::vector<std::string> tokenizer_names();
bool is_tokenizer_name(const std::filesystem::path& name);

}  // namespace nunchi
