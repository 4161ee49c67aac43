#include "cli/search_options.h"

#include "cli/option_group.h"
#include "nunchi/base/error.h"

namespace nunchi::cli {

void SearchArguments::add_to(CLI::App& command) {
  constexpr std::int64_t kMaxCount = 1 << 20;
  OptionGroup searching(command, kSearch);
  beam_size = searching
                  .add("--beam-size", search.beam_size, whole_number(1, 4096),
                       "Hypotheses to keep for each sentence; 1 is greedy search")
                  ->default_str(kModelDefault);
  normalize_ = searching
                   .add("--normalize", search.normalize, number(0),
                        "Rank by log-probability divided by length to this power")
                   ->default_str(kModelDefault);
  no_repeat_ = searching
                   .add("--no-repeat-ngram", search.no_repeat_ngram, whole_number(0, kMaxCount),
                        "Never repeat a sequence of N tokens; 0 allows it")
                   ->default_str(kModelDefault);
  searching.add("--max-repeats", search.max_repeats, whole_number(0, kMaxCount),
                "How often the same few tokens may repeat in a row; 0 sets no limit");
  OptionGroup sampling(command, "Sampling");
  sampling.flag("--sample", search.sample, "Draw tokens at random instead of searching");
  top_k_ = sampling.add("--top-k", search.top_k, whole_number(0, kMaxCount),
                        "Draw from the N most likely tokens; 0 draws from all");
  top_p_ = sampling.add("--top-p", search.top_p, number_above(0, 1),
                        "Draw from the most likely tokens that together have this probability");
  temperature_ = sampling.add("--temperature", search.temperature, number_above(0),
                              "Above 1: more varied tokens; below 1: more likely tokens");
  seed_ = sampling.add("--seed", search.seed, seed(), "Random seed for sampling");
}

void SearchArguments::check() const {
  if (search.sample) return;
  for (const CLI::Option* option : {top_k_, top_p_, temperature_, seed_}) {
    if (*option) throw UsageError(option->get_name() + " has no effect without --sample.");
  }
}

SearchOptions SearchArguments::merged_with(const SearchOptions& defaults) const {
  const auto given = [](const CLI::Option* option) { return option != nullptr && *option; };
  SearchOptions merged = search;
  if (!given(beam_size)) merged.beam_size = search.sample ? 1 : defaults.beam_size;
  if (!given(normalize_)) merged.normalize = defaults.normalize;
  if (min_length != nullptr && !*min_length) merged.min_length = defaults.min_length;
  if (!given(max_length)) merged.max_length = defaults.max_length;
  if (!given(no_repeat_)) merged.no_repeat_ngram = defaults.no_repeat_ngram;
  return merged;
}

}  // namespace nunchi::cli
