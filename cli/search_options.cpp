#include "cli/search_options.h"

#include "cli/seed.h"
#include "nunchi/base/error.h"

namespace nunchi::cli {

void SearchArguments::add_to(CLI::App& command) {
  command.add_flag("--sample", search.sample, "Draw tokens instead of searching");
  top_k_ = command.add_option("--top-k", search.top_k, "Draw from the so many likeliest");
  top_p_ = command.add_option("--top-p", search.top_p, "Draw from the likeliest that hold so much");
  temperature_ =
      command.add_option("--temperature", search.temperature, "Flatter above 1, sharper below");
  seed_ = command.add_option("--seed", search.seed, "Decides the draws")->check(seed());
  beam_size =
      command.add_option("--beam-size", search.beam_size, "Hypotheses to keep; 1 is greedy");
  normalize_ =
      command.add_option("--normalize", search.normalize, "Divide scores by length to this power");
  no_repeat_ = command.add_option("--no-repeat-ngram", search.no_repeat_ngram,
                                  "Never say the same n tokens twice");
  command
      .add_option("--max-repeats", search.max_repeats,
                  "How often a few tokens may follow one another; 0: for ever")
      ->capture_default_str();
}

void SearchArguments::check() const {
  if (search.sample) return;
  for (const CLI::Option* option : {top_k_, top_p_, temperature_, seed_}) {
    if (*option) throw UsageError(option->get_name() + " is about drawing, so it needs --sample.");
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
