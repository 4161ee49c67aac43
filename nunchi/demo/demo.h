// The demo: all steps from data to evaluation, on generated sentences.
//
//   sentences → tokenizer → training → translation of held-out sentences → exact matches, BLEU
//                                    → heads that align words best → right source words
//
// The pairs for validation are held out from training, too, and differ from the held-out ones.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "nunchi/demo/generator.h"
#include "nunchi/inference/alignment_choice.h"
#include "nunchi/training/training_run.h"

namespace nunchi {

struct DemoOptions {
  std::uint64_t seed = 1;
  std::filesystem::path output = "runs/demo";  // a run folder; becomes a model folder
  std::int64_t training = 80000;               // number of training pairs
  std::int64_t validation = 500;               // number of pairs for validation
  std::int64_t held_out = 1000;                // number of held-out pairs
  std::int64_t steps = 2200;
  std::int64_t checkpoints = 1;  // kept, at equal distances, for `nunchi inspect --checkpoints`
};

struct DemoTranslation {
  DemoPair pair;
  std::string translation;
  bool exact() const { return translation == pair.english; }
};

struct DemoResult {
  std::vector<DemoTranslation> translations;  // one for each held-out sentence
  double exact_match = 0;                     // fraction of exact matches, 0 to 1
  double bleu = 0;
  // The heads that align best, chosen on the pairs for validation, and how often they are right on
  // the held-out sentences: for each English content word of a slot (demo/slots.h), whether the
  // Korean word with the largest weight is one that it translates. The correct translations are
  // given to the decoder.
  AlignmentHeads alignment_heads;
  AlignmentCount alignment;
  AttentionMatrix attention;  // one held-out sentence: weights of these heads between its words
  double seconds = 0;
};

struct DemoHooks {
  std::function<void(const std::string&)> note;  // gets messages for the user
  std::function<void(const TrainingProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;  // set to true to stop the demo
};

// The config that the demo trains with.
TrainConfig demo_config(const DemoOptions& options);

// Writes the sentences to `output`/data and the trained model to `output`. Replaces an earlier
// demo, complete or not; throws UsageError when the folder contains anything else. Returns nullopt
// when it was stopped. The heads that align best become part of the model folder.
std::optional<DemoResult> run_demo(ContextBase& context, const DemoOptions& options,
                                   const DemoHooks& hooks);

}  // namespace nunchi
