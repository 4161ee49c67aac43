// A model folder, opened: one object that owns all that a program needs to run a model.
//
//   const Pipeline pipeline = Pipeline::open("runs/demo");
//   pipeline.translator().translate("내일 만나요").text
//
// Many threads share one copy of the weights; each thread takes a worker of its own:
//
//   std::jthread thread([worker = pipeline.worker()] { worker.translator().translate(…); });
#pragma once

#include <filesystem>
#include <memory>

#include "nunchi/device/make_context.h"
#include "nunchi/inference/embedder.h"
#include "nunchi/inference/filler.h"
#include "nunchi/inference/generator.h"
#include "nunchi/inference/line_classifier.h"
#include "nunchi/inference/model_folder.h"
#include "nunchi/inference/scorer.h"
#include "nunchi/inference/translator.h"

namespace nunchi {

struct PipelineOptions {
  ContextOptions device = {};
  // Runs on the model that config.json describes, before the weights are read.
  AbilityCheck check = {};
};

// Movable. A pipeline and the parts that it returns (translator(), generator(), …) are used by one
// thread at a time, and the pipeline outlives the parts. Pipelines that share weights may run at
// the same time.
class Pipeline {
 public:
  // Throws Error when the folder cannot be loaded, UsageError for a device that does not exist.
  static Pipeline open(const std::filesystem::path& folder, const PipelineOptions& options = {});

  // Another pipeline over the same weights, with a context of its own on the same device. It keeps
  // the weights alive and may outlive this pipeline. Any thread may call this.
  Pipeline worker() const { return worker(shared_->device.threads); }
  Pipeline worker(int threads) const;  // 0: one for each core that this process may use

  ContextBase& context() const { return own_ != nullptr ? *own_ : *shared_->context; }
  const Model& model() const { return shared_->folder.model(); }
  const Tokenizers& tokenizers() const { return shared_->folder.tokenizers(); }
  const SearchOptions& search() const { return shared_->folder.search(); }

  // What runs the model on this pipeline's context. Without options, translator() and generator()
  // search as the folder's generation_config.json says. Each throws Error when the model lacks the
  // ability, and UsageError for options that contradict each other.
  Translator translator() const { return translator({.search = search()}); }
  Translator translator(const TranslatorOptions& options) const;
  Generator generator() const { return generator({.search = search()}); }
  Generator generator(const GeneratorOptions& options) const;
  Filler filler(const FillerOptions& options = {}) const;
  Embedder embedder(const EmbedderOptions& options = {}) const;
  LineClassifier classifier(const ReaderOptions& options = {}) const;
  Scorer scorer(const ScorerOptions& options = {}) const;
  LineScorer line_scorer(const ScorerOptions& options = {}) const;

 private:
  // The weights and the context that they were allocated in; never changed after loading.
  struct Shared {
    Shared(const std::filesystem::path& path, const PipelineOptions& options);

    ContextOptions device;
    std::unique_ptr<ContextBase> context;
    ModelFolder folder;
  };

  Pipeline(std::shared_ptr<const Shared> shared, std::unique_ptr<ContextBase> own)
      : shared_(std::move(shared)), own_(std::move(own)) {}

  std::shared_ptr<const Shared> shared_;
  std::unique_ptr<ContextBase> own_;  // a worker's context; null for the pipeline that was opened
};

}  // namespace nunchi
