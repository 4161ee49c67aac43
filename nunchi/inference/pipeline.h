// An opened model folder: one object that owns everything that a program needs to run a model.
//
//   const Pipeline pipeline = Pipeline::open("runs/demo");
//   pipeline.translator().translate("내일 만나요").text
//
// Threads share one copy of the weights; each thread takes its own worker:
//
//   std::jthread thread([worker = pipeline.worker()] { worker.translator().translate(…); });
#pragma once

#include <filesystem>
#include <memory>

#include "nunchi/device/make_context.h"
#include "nunchi/inference/embedder.h"
#include "nunchi/inference/filler.h"
#include "nunchi/inference/generator.h"
#include "nunchi/inference/inspector.h"
#include "nunchi/inference/line_classifier.h"
#include "nunchi/inference/model_folder.h"
#include "nunchi/inference/scorer.h"
#include "nunchi/inference/translator.h"

namespace nunchi {

struct PipelineOptions {
  ContextOptions device = {};
  // Called before the weights are read; throws Error if the model lacks an ability that the program
  // needs. For example as_translation_model.
  AbilityCheck check = {};
};

// Movable. A pipeline and the parts that it returns (translator(), generator(), …) are used by one
// thread at a time, and the pipeline outlives the parts. Pipelines that share weights may run at
// the same time.
class Pipeline {
 public:
  // Throws Error when the folder cannot be loaded, UsageError for a device that does not exist.
  static Pipeline open(const std::filesystem::path& folder, const PipelineOptions& options = {});

  // Another pipeline over the same weights, with its own context on the same device. It keeps the
  // weights alive and may outlive this pipeline. May be called from any thread, even
  // while another thread uses this pipeline.
  Pipeline worker() const { return worker(shared_->device.threads); }
  Pipeline worker(int threads) const;  // 0: one thread for each core that this process may use

  ContextBase& context() const {
    return worker_context_ != nullptr ? *worker_context_ : *shared_->context;
  }
  const Model& model() const { return shared_->folder.model(); }
  const Tokenizers& tokenizers() const { return shared_->folder.tokenizers(); }
  const SearchOptions& search() const { return shared_->folder.search(); }

  // Objects that run the model on this pipeline's context. Without options, translator() and
  // generator() use the search options of the folder's generation_config.json. Each function throws
  // Error when the model lacks the ability, and UsageError for options that contradict each other.
  Translator translator() const { return translator({.search = search()}); }
  Translator translator(const TranslatorOptions& options) const;
  Generator generator() const { return generator({.search = search()}); }
  Generator generator(const GeneratorOptions& options) const;
  Filler filler(const FillerOptions& options = {}) const;
  Embedder embedder(const EmbedderOptions& options = {}) const;
  LineClassifier classifier(const ReaderOptions& options = {}) const;
  Scorer scorer(const ScorerOptions& options = {}) const;
  LineScorer line_scorer(const ScorerOptions& options = {}) const;
  Inspector inspector() const { return inspector({.search = search()}); }
  Inspector inspector(const InspectorOptions& options) const;

 private:
  // The weights and the context that they were allocated in; never changed after loading.
  struct Shared {
    Shared(const std::filesystem::path& folder_path, const PipelineOptions& options);

    ContextOptions device;
    std::string path;
    std::unique_ptr<ContextBase> context;
    ModelFolder folder;
  };

  Pipeline(std::shared_ptr<const Shared> shared, std::unique_ptr<ContextBase> worker_context)
      : shared_(std::move(shared)), worker_context_(std::move(worker_context)) {}

  std::shared_ptr<const Shared> shared_;
  std::unique_ptr<ContextBase> worker_context_;  // null for the pipeline that was opened
};

}  // namespace nunchi
