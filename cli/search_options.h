// How to search: what commands that generate have in common.
#pragma once

#include <CLI/CLI.hpp>

#include "nunchi/decoding/search.h"

namespace nunchi::cli {

// What is given on the command line goes before what the model's folder says.
struct SearchArguments {
  // --sample, --top-k, --top-p, --temperature, --seed, --beam-size, --normalize, --no-repeat-ngram,
  // --max-repeats. A command may add lengths, and says which options they are.
  void add_to(CLI::App& command);

  // Throws UsageError for options that say how to draw where nothing is drawn.
  void check() const;
  SearchOptions with(const SearchOptions& of_model) const;

  SearchOptions search;
  CLI::Option *beam_size = nullptr, *min_length = nullptr, *max_length = nullptr;

 private:
  CLI::Option *normalize_ = nullptr, *no_repeat_ = nullptr, *top_k_ = nullptr, *top_p_ = nullptr,
              *temperature_ = nullptr, *seed_ = nullptr;
};

}  // namespace nunchi::cli
