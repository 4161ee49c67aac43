// Opened model folders that translate together; one folder translates alone.
//
//   const Ensemble ensemble = Ensemble::open({"runs/first", "runs/second"});
//   ensemble.translator().translate("A man is riding a bike.").text
//
// models/ensemble.h says what an ensemble computes. As with Pipeline, threads share one copy of the
// weights; each thread takes its own worker().
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "nunchi/inference/pipeline.h"

namespace nunchi {

// Movable. An ensemble and its translators are used by one thread at a time, and the ensemble
// outlives them. Ensembles that share weights may run at the same time.
class Ensemble {
 public:
  // Throws Error when a folder cannot be loaded or its model cannot translate, UsageError for a
  // device that does not exist or without folders.
  static Ensemble open(const std::vector<std::filesystem::path>& folders,
                       const ContextOptions& device = {});

  // Another ensemble over the same weights, with its own context on the same device; see
  // Pipeline::worker().
  Ensemble worker() const { return worker(shared_->device.threads); }
  Ensemble worker(int threads) const;

  ContextBase& context() const {
    return worker_context_ != nullptr ? *worker_context_ : *shared_->context;
  }
  // The search options of the first folder.
  const SearchOptions& search() const { return shared_->folders.front()->search(); }

  // Throws Error, naming the difference, if the models do not have the same target tokens, and
  // UsageError for options that contradict each other. Without options, uses those of search().
  Translator translator() const { return translator({.search = search()}); }
  Translator translator(const TranslatorOptions& options) const;

 private:
  // The weights and the context that they were allocated in; never changed after loading.
  struct Shared {
    Shared(std::vector<std::filesystem::path> folder_paths, const ContextOptions& options);

    ContextOptions device;
    std::vector<std::filesystem::path> paths;
    std::unique_ptr<ContextBase> context;
    std::vector<std::unique_ptr<ModelFolder>> folders;
  };

  Ensemble(std::shared_ptr<const Shared> shared, std::unique_ptr<ContextBase> worker_context)
      : shared_(std::move(shared)), worker_context_(std::move(worker_context)) {}

  std::shared_ptr<const Shared> shared_;
  std::unique_ptr<ContextBase> worker_context_;  // null for the ensemble that was opened
};

}  // namespace nunchi
