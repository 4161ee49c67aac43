#include "cli/search_options.h"

#include "cli/option_group.h"
#include "nunchi/base/error.h"

namespace nunchi::cli {

void SearchArguments::add_to(CLI::App& command) {
  constexpr std::int64_t kMost = 1 << 20;
  OptionGroup searching(command, kSearch);
  beam_size = searching
                  .add("--beam-size", search.beam_size, whole_number(1, 4096),
                       "Hypotheses to keep for each sentence; 1 is greedy search")
                  ->default_str(kOfModel);
  normalize_ = searching
                   .add("--normalize", search.normalize, number(0),
                        "Rank by log-probability divided by length to this power")
                   ->default_str(kOfModel);
  no_repeat_ = searching
                   .add("--no-repeat-ngram", search.no_repeat_ngram, whole_number(0, kMost),
                        "Never repeat a sequence of N tokens; 0 allows it")
                   ->default_str(kOfModel);
  searching.add("--max-repeats", search.max_repeats, whole_number(0, kMost),
                "How often the same few tokens may follow one another; 0 sets no limit");
  OptionGroup sampling(command, "Sampling");
  sampling.flag("--sample", search.sample, "Draw tokens at random instead of searching");
  top_k_ = sampling.add("--top-k", search.top_k, whole_number(0, kMost),
                        "Draw from the N most likely tokens; 0 draws from all");
  top_p_ = sampling.add("--top-p", search.top_p, number_above(0, 1),
                        "Draw from the most likely tokens that together have this probability");
  temperature_ = sampling.add("--temperature", search.temperature, number_above(0),
                              "Above 1: more varied draws; below 1: more likely ones");
  seed_ = sampling.add("--seed", search.seed, seed(), "Seed of the draws");
}

void SearchArguments::check() const {
  if (search.sample) return;
  for (const CLI::Option* option : {top_k_, top_p_, temperature_, seed_}) {
    if (*option) throw UsageError(option->get_name() + " has no effect without --sample.");
  }
}

SearchOptions SearchArguments::with(const SearchOptions& of_model) const {
  const auto given = [](const CLI::Option* option) { return option != nullptr && *option; };
  SearchOptions both = search;
  if (!given(beam_size)) both.beam_size = search.sample ? 1 : of_model.beam_size;
  if (!given(normalize_)) both.normalize = of_model.normalize;
  if (min_length != nullptr && !*min_length) both.min_length = of_model.min_length;
  if (!given(max_length)) both.max_length = of_model.max_length;
  if (!given(no_repeat_)) both.no_repeat_ngram = of_model.no_repeat_ngram;
  return both;
}

}  // namespace nunchi::cli
