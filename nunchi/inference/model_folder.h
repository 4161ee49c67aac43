// The loaded contents of a model folder: model, tokenizers and search options.
//
//   CpuContext context;
//   const ModelFolder folder(context, "runs/demo", as_translation_model);
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "nunchi/decoding/searcher.h"
#include "nunchi/decoding/typical_scores.h"
#include "nunchi/models/format/alignment_heads.h"
#include "nunchi/models/format/tokenizers.h"

namespace nunchi {

// Throws Error when a model lacks an ability that the caller needs: as_translation_model() or a
// similar function of models/sequence_model.h. Empty: any model is accepted.
using AbilityCheck = std::function<void(const Model& model)>;

class ModelFolder {
 public:
  // Builds the model from config.json, runs `check` on it, and only then reads the weights into the
  // context's memory. Throws Error when a file is missing, damaged or does not fit the others.
  ModelFolder(ContextBase& context, const std::filesystem::path& folder,
              const AbilityCheck& check = {});

  const Model& model() const { return *model_; }
  const Tokenizers& tokenizers() const { return tokenizers_; }
  // From generation_config.json; defaults if the folder has none.
  const SearchOptions& search() const { return search_; }
  // From the same file; none if it does not name them.
  const AlignmentHeads& alignment_heads() const { return alignment_heads_; }
  // From generation_config.json; none if it does not have them.
  const std::optional<TypicalScores>& typical_scores() const { return typical_scores_; }

 private:
  std::unique_ptr<Model> model_;
  Tokenizers tokenizers_;
  SearchOptions search_;
  AlignmentHeads alignment_heads_;
  std::optional<TypicalScores> typical_scores_;
};

// The options of a Translator, Scorer or Inspector, with the folder's alignment heads unless others
// are given.
template <class Options>
Options with_alignment_heads(Options options, const ModelFolder& folder) {
  if (options.alignment_heads.empty()) options.alignment_heads = folder.alignment_heads();
  return options;
}

}  // namespace nunchi
