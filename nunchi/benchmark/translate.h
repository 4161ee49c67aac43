// The speed of translation with random weights or with the model of a folder.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nunchi/benchmark/limits.h"
#include "nunchi/decoding/searcher.h"
#include "nunchi/models/family.h"

namespace nunchi::benchmark {

struct TranslateBenchResult {
  std::int64_t sentences = 0;
  std::int64_t tokens = 0;            // tokens of the best hypotheses, without </s>
  double seconds = 0;                 // median time of a round
  double first_sentence_seconds = 0;  // from the start of loading to the first translation
  Profile profile;                    // covers all rounds; empty unless requested
  int rounds = 0;
};

struct TranslateBenchOptions {
  ModelConfig model;  // its family must be able to translate
  std::int64_t sentences = 128;
  std::int64_t batch = 32;
  std::int64_t source_length = 24;
  std::int64_t target_length = 32;  // every translation has this length
  int beam_size = 4;
  int rounds = 3;
  bool profile = false;
};

// Measures with random weights and random sentences.
TranslateBenchResult measure_translation(ContextBase& context,
                                         const TranslateBenchOptions& options);

struct FolderBenchOptions {
  std::string folder;
  std::vector<std::string> lines;
  std::int64_t batch = 32;  // sentences
  int beam_size = 0;        // 0: the folder's
  int rounds = 3;
  bool profile = false;
};

// Measures the model of a folder on real lines; the model decides the lengths of the translations.
TranslateBenchResult measure_translation(ContextBase& context, const FolderBenchOptions& options);

}  // namespace nunchi::benchmark
