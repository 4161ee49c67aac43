#include "nunchi/inference/pipeline.h"

namespace nunchi {

Pipeline::Shared::Shared(const std::filesystem::path& folder_path, const PipelineOptions& options)
    : device(options.device),
      path(folder_path.string()),
      context(make_context(options.device)),
      folder(*context, folder_path, options.check) {
  context->synchronize();  // workers read the weights from other streams
}

Pipeline Pipeline::open(const std::filesystem::path& folder, const PipelineOptions& options) {
  return {std::make_shared<const Shared>(folder, options), nullptr};
}

Pipeline Pipeline::worker(int threads) const {
  ContextOptions device = shared_->device;
  device.threads = threads;
  return {shared_, make_context(device)};
}

Translator Pipeline::translator(const TranslatorOptions& options) const {
  return {context(),
          {{model(), tokenizers(), shared_->path, shared_->folder.typical_scores()}},
          with_alignment_heads(options, shared_->folder)};
}

Generator Pipeline::generator(const GeneratorOptions& options) const {
  return {context(), model(), tokenizers(), options};
}

Filler Pipeline::filler(const FillerOptions& options) const {
  return {context(), model(), tokenizers(), options};
}

Embedder Pipeline::embedder(const EmbedderOptions& options) const {
  return {context(), model(), tokenizers(), options};
}

LineClassifier Pipeline::classifier(const ReaderOptions& options) const {
  return {context(), model(), tokenizers(), options};
}

Scorer Pipeline::scorer(const ScorerOptions& options) const {
  return {context(), model(), tokenizers(), with_alignment_heads(options, shared_->folder)};
}

Inspector Pipeline::inspector(const InspectorOptions& options) const {
  return {context(), model(), tokenizers(), with_alignment_heads(options, shared_->folder)};
}

LineScorer Pipeline::line_scorer(const ScorerOptions& options) const {
  return {context(), model(), tokenizers(), options};
}

}  // namespace nunchi
