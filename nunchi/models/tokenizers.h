// The tokenizers of a model folder: source.spm and target.spm, or one tokenizer.spm for both sides.
#pragma once

#include <filesystem>
#include <memory>

#include "nunchi/models/sequence_model.h"
#include "nunchi/text/tokenizer.h"

namespace nunchi {

class Tokenizers {
 public:
  // One for both sides.
  explicit Tokenizers(std::unique_ptr<Tokenizer> shared) : source_(std::move(shared)) {}
  Tokenizers(std::unique_ptr<Tokenizer> source, std::unique_ptr<Tokenizer> target)
      : source_(std::move(source)), target_(std::move(target)) {}

  const Tokenizer& source() const { return *source_; }
  const Tokenizer& target() const { return target_ != nullptr ? *target_ : *source_; }
  bool shared() const { return target_ == nullptr; }

  // Throws Error, naming `where`, when the model knows another number of tokens.
  void check_fit(const TranslationModel& model, const std::string& where) const;

 private:
  std::unique_ptr<Tokenizer> source_, target_;
};

// Throws Error when the folder has none, or only one of two.
Tokenizers load_tokenizers(const std::filesystem::path& folder);
// Each file appears whole or not at all.
void save_tokenizers(const Tokenizers& tokenizers, const std::filesystem::path& folder);

}  // namespace nunchi
