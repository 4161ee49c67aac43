// A model that can do what is asked of it, with all that its folder holds.
//
//   CpuContext context;
//   const TranslationFolder folder(context, "runs/multi30k-tiny");
#pragma once

#include <filesystem>
#include <memory>

#include "nunchi/decoding/search.h"
#include "nunchi/models/format/tokenizers.h"

namespace nunchi {

// `Ability` is one of models/sequence_model.h.
template <class Ability>
class ModelFolder {
 public:
  // Throws Error when the model cannot do it, which config.json tells before anything else is read,
  // or when something is missing or does not fit.
  ModelFolder(ContextBase& context, const std::filesystem::path& folder);

  const Model& model() const { return *model_; }
  const Tokenizers& tokenizers() const { return tokenizers_; }
  const SearchOptions& search() const { return search_; }

 private:
  std::unique_ptr<Model> model_;
  Tokenizers tokenizers_;
  SearchOptions search_;
};

using TranslationFolder = ModelFolder<TranslationModel>;
using TextFolder = ModelFolder<LanguageModel>;
using ReaderFolder = ModelFolder<MaskedLanguageModel>;

}  // namespace nunchi
