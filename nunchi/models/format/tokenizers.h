// The tokenizers of a model folder: source and target, or one called tokenizer for both sides.
// Their names end with .spm (SentencePiece) or .tok (characters, bytes).
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
  // One for both sides. Throws Error when an id of `tokens` is not in the target's vocabulary.
  explicit Tokenizers(std::unique_ptr<Tokenizer> shared, GenerationTokens tokens = {});
  Tokenizers(std::unique_ptr<Tokenizer> source, std::unique_ptr<Tokenizer> target,
             GenerationTokens tokens = {});

  const Tokenizer& source() const { return *source_; }
  const Tokenizer& target() const { return target_ != nullptr ? *target_ : *source_; }
  bool shared() const { return target_ == nullptr; }
  // The special tokens of the decoder, and the ids among them that are not the tokenizers' own.
  const DecoderTokens& decoder() const { return decoder_; }
  const GenerationTokens& generation_tokens() const { return generation_tokens_; }

  // Throws Error, naming `where`, when the model's vocabulary has another size.
  void check_fit(const Model& model, const std::string& where) const;

 private:
  std::unique_ptr<Tokenizer> source_, target_;
  GenerationTokens generation_tokens_;
  DecoderTokens decoder_;
};

// Whether the folder has a tokenizer, be it only one of two.
bool has_tokenizers(const std::filesystem::path& folder);
// With the special tokens of the folder's generation_config.json. Throws Error when the folder has
// no tokenizer, or only one of two.
Tokenizers load_tokenizers(const std::filesystem::path& folder);
// Each file appears whole or not at all. Special tokens that are not the tokenizers' own are saved
// by save_generation_config.
void save_tokenizers(const Tokenizers& tokenizers, const std::filesystem::path& folder);

// The folder's file of a tokenizer called "tokenizer", "source" or "target"; empty: it has none.
std::filesystem::path tokenizer_file(const std::filesystem::path& folder, const std::string& stem);
// Names that a tokenizer's file can have in a model folder.
std::vector<std::string> tokenizer_names();
bool is_tokenizer_name(const std::filesystem::path& name);

}  // namespace nunchi
