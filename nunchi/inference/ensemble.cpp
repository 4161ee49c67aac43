#include "nunchi/inference/ensemble.h"

#include <utility>

#include "nunchi/base/error.h"

namespace nunchi {

Ensemble::Shared::Shared(std::vector<std::filesystem::path> folder_paths,
                         const ContextOptions& options)
    : device(options), paths(std::move(folder_paths)), context(make_context(options)) {
  if (paths.empty()) throw UsageError("an ensemble needs at least one model folder.");
  for (const std::filesystem::path& path : paths) {
    folders.push_back(std::make_unique<ModelFolder>(*context, path, as_translation_model));
  }
  context->synchronize();  // workers read the weights from other streams
}

Ensemble Ensemble::open(const std::vector<std::filesystem::path>& folders,
                        const ContextOptions& device) {
  return {std::make_shared<const Shared>(folders, device), nullptr};
}

Ensemble Ensemble::worker(int threads) const {
  ContextOptions device = shared_->device;
  device.threads = threads;
  return {shared_, make_context(device)};
}

Translator Ensemble::translator(const TranslatorOptions& options) const {
  std::vector<TranslatorModel> models;
  for (std::size_t i = 0; i < shared_->folders.size(); ++i) {
    const ModelFolder& folder = *shared_->folders[i];
    models.push_back(
        {folder.model(), folder.tokenizers(), shared_->paths[i].string(), folder.typical_scores()});
  }
  return {context(), models, with_alignment_heads(options, *shared_->folders.front())};
}

}  // namespace nunchi
