// The embedded default: the whole job on sentences that the program makes up itself.
//
//   sentences → tokenizer → training → translations of sentences never seen → how many are right
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "nunchi/demo/generator.h"
#include "nunchi/inference/alignment.h"
#include "nunchi/training/training_run.h"

namespace nunchi {

struct DemoOptions {
  std::uint64_t seed = 1;
  std::filesystem::path output = "runs/demo";  // becomes a run's folder and so a model folder
  std::int64_t training = 80000;               // pairs
  std::int64_t held_out = 1000;
  std::int64_t steps = 2200;
};

struct DemoTranslation {
  DemoPair pair;
  std::string translation;
  bool exact() const { return translation == pair.english; }
};

struct DemoResult {
  std::vector<DemoTranslation> translations;  // of all held-out sentences
  double exact_match = 0;                     // 0 to 1
  double bleu = 0;
  AttentionMatrix attention;  // of one of them, between words
  double seconds = 0;
};

struct DemoHooks {
  std::function<void(const std::string&)> note;  // a sentence for the person at the terminal
  std::function<void(const TrainingProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;
};

// The config that the demo trains with: also what a user would write to do the same.
TrainConfig demo_config(const DemoOptions& options);

// Leaves the sentences (OUTPUT/data) and the trained model (OUTPUT). An earlier demo there,
// finished or not, is replaced; anything else is refused with a UsageError. Nothing comes back when
// it was stopped.
std::optional<DemoResult> run_demo(ContextBase& context, const DemoOptions& options,
                                   const DemoHooks& hooks);

}  // namespace nunchi
