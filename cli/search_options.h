// The options of a search, for the commands that generate text.
#pragma once

#include <CLI/CLI.hpp>

#include "nunchi/decoding/search_options.h"

namespace nunchi::cli {

// Search options on the command line replace those in the model's generation_config.json.
struct SearchArguments {
  // Adds the groups Search (--beam-size, --normalize, --no-repeat-ngram, --max-repeats) and
  // Sampling (--sample, --top-k, --top-p, --temperature, --seed). A command adds its own options
  // for lengths and stores them in min_length and max_length.
  void add_to(CLI::App& command);

  // Throws UsageError for sampling options without --sample.
  void check() const;
  // The options of the command line, and the model's `defaults` for those that were not given.
  SearchOptions merged_with(const SearchOptions& defaults) const;

  SearchOptions search;
  CLI::Option *beam_size = nullptr, *min_length = nullptr, *max_length = nullptr;

 private:
  CLI::Option *normalize_ = nullptr, *no_repeat_ = nullptr, *top_k_ = nullptr, *top_p_ = nullptr,
              *temperature_ = nullptr, *seed_ = nullptr;
};

inline constexpr const char* kSearch = "Search";
inline constexpr const char* kModelDefault = "the model's";  // set by the model folder

}  // namespace nunchi::cli
