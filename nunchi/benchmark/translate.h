// The speed of translation: tokens in, tokens out, from random weights or a model's folder.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nunchi/benchmark/limits.h"
#include "nunchi/decoding/search.h"
#include "nunchi/models/families/transformer_config.h"

namespace nunchi::benchmark {

struct TranslateBenchResult {
  std::int64_t sentences = 0;
  std::int64_t tokens = 0;            // of the best hypotheses, </s> not counted
  double seconds = 0;                 // the median of all rounds
  double first_sentence_seconds = 0;  // from nothing to the first translation
  Profile profile;                    // of all rounds, if asked for
  int rounds = 0;
};

struct TranslateBenchOptions {
  TransformerConfig model;
  std::int64_t sentences = 128;
  std::int64_t batch = 32;
  std::int64_t source_length = 24;
  std::int64_t target_length = 32;  // every sentence gets exactly so many tokens
  int beam_size = 4;
  int rounds = 3;
  bool profile = false;
};

// Random weights, random sentences.
TranslateBenchResult measure_translation(ContextBase& context,
                                         const TranslateBenchOptions& options);

struct FolderBenchOptions {
  std::string folder;
  std::vector<std::string> lines;
  std::int64_t batch = 32;  // sentences
  int beam_size = 0;        // 0: what the folder says
  int rounds = 3;
  bool profile = false;
};

// A model's folder on real lines, which end where the model ends them.
TranslateBenchResult measure_translation(ContextBase& context, const FolderBenchOptions& options);

}  // namespace nunchi::benchmark
