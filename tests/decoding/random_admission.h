// Checks that sentences that enter and leave a search at random steps get the results that they get
// alone.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "nunchi/decoding/searcher.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {

// A sentence to search for.
struct SearchJob {
  Tokens source, prefix;
  SearchOptions options;
  std::int64_t number = 0;
};

// Jobs with all kinds of options and the same beam size. Sources are empty for a language model.
inline std::vector<SearchJob> random_jobs(int count, int beam, bool has_source,
                                          std::int64_t vocabulary) {
  std::vector<SearchJob> jobs;
  for (int i = 0; i < count; ++i) {
    const auto draws = random_values<double>(12, 900 + static_cast<std::uint64_t>(i));
    const auto below = [&](std::size_t d, int most) {
      return static_cast<int>((draws[d] + 1) / 2 * most);
    };
    SearchJob job{.number = i * 3};
    if (has_source) {
      job.source = sentences_of({1 + below(0, 14)}, vocabulary, static_cast<std::uint64_t>(i))[0];
      job.source.push_back(kTokens.end);
    }
    const int prefix = has_source ? std::max(0, below(1, 8) - 3) : 1 + below(1, 9);
    job.prefix = sentences_of({prefix}, vocabulary, 100 + static_cast<std::uint64_t>(i))[0];
    SearchOptions& options = job.options;
    options.beam_size = beam;
    options.max_length = prefix + 1 + below(2, 18);
    options.min_length = std::min<std::int64_t>(below(3, 8), options.max_length);
    options.no_repeat_ngram = below(4, 4);
    options.max_repeats = below(5, 4);
    options.normalize = below(6, 3) * 0.5;
    if (beam == 1 && i % 2 == 1) {
      options.sample = true;
      options.n_best = 1 + below(7, 3);
      options.temperature = 0.5 + draws[8] * 0.3;
      options.top_k = below(9, 2) * 9;
      options.top_p = 0.8 + 0.19 * draws[10];
      options.seed = static_cast<std::uint64_t>(i / 4);
    } else {
      options.n_best = 1 + below(7, beam);
    }
    jobs.push_back(job);
  }
  return jobs;
}

// A model and the other arguments of a search.
struct SearchCase {
  GeneratingModel model;
  ContextBase& context;
  DecoderTokens tokens = kTokens;
  std::int64_t source_vocabulary = 0;

  bool has_source() const { return model.encoder_decoder != nullptr; }
  std::optional<Source> source(std::span<const SearchJob> jobs) const {
    if (!has_source()) return std::nullopt;
    std::vector<Tokens> sources;
    for (const SearchJob& job : jobs) sources.push_back(job.source);
    return make_token_batch(context, sources, source_vocabulary);
  }
  // The request of these jobs, and the vectors that it refers to.
  struct Request {
    std::vector<Tokens> prefixes;
    std::vector<std::int64_t> numbers;
    std::vector<SearchOptions> options;
    SearchRequest request;
  };
  Request request(std::span<const SearchJob> jobs) const {
    Request all;
    for (const SearchJob& job : jobs) {
      all.prefixes.push_back(job.prefix);
      all.numbers.push_back(job.number);
      all.options.push_back(job.options);
    }
    all.request = {.source = source(jobs),
                   .prefixes = all.prefixes,
                   .numbers = all.numbers,
                   .options = all.options};
    return all;
  }
  Hypotheses alone(const SearchJob& job) const {
    const std::vector<Tokens> prefixes{job.prefix};
    const std::vector<std::int64_t> numbers{job.number};
    const SearchInput input{.source = source(std::span(&job, 1)),
                            .prefixes = prefixes,
                            .numbers = numbers,
                            .tokens = tokens};
    return (has_source() ? search(*model.encoder_decoder, input, job.options)
                         : search(*model.language_model, context, input, job.options))[0];
  }
};

inline void expect_same(const Hypotheses& found, const Hypotheses& expected,
                        const std::string& which) {
  ASSERT_EQ(found.size(), expected.size()) << which;
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].tokens, expected[i].tokens) << which;
    EXPECT_TRUE(same_bits(found[i].token_scores, expected[i].token_scores)) << which;
    EXPECT_EQ(found[i].score, expected[i].score) << which;
    EXPECT_EQ(found[i].log_probability, expected[i].log_probability) << which;
    EXPECT_EQ(found[i].ended_by_eos, expected[i].ended_by_eos) << which;
  }
}

// Admits the jobs in groups of one to three, between random steps, into a search with the capacity
// for a few of them, and collects at random times.
inline void expect_same_results_as_alone(const SearchCase& tested, std::span<const SearchJob> jobs,
                                         std::int64_t beam, std::uint64_t seed) {
  const SearchLimits limits{.units = 7,
                            .beam_size = beam,
                            .max_tokens = 40,
                            .cached_tokens = 120 * beam,
                            .source_rows = tested.has_source() ? 40 : 0,
                            .source_length = tested.has_source() ? 16 : 0};
  Search search(tested.model, tested.context, {.limits = limits, .tokens = tested.tokens});
  const std::int64_t cached_tokens = search.free_cached_tokens();
  std::map<std::int64_t, std::size_t> job_of;
  std::map<std::size_t, Hypotheses> found;
  std::size_t next = 0;
  int refusals = 0, joined = 0;
  std::string last_refusal;
  const auto collect = [&] {
    for (FoundSentence& sentence : search.collect()) {
      ASSERT_TRUE(job_of.contains(sentence.id)) << "an id came twice";
      found[job_of.at(sentence.id)] = std::move(sentence.hypotheses);
      job_of.erase(sentence.id);
    }
  };
  for (std::uint64_t round = 0; found.size() < jobs.size(); ++round) {
    ASSERT_LT(round, 3000u) << last_refusal << found.size() << " of " << jobs.size()
                            << " sentences were found";
    const auto draws = random_values<double>(4, seed * 7919 + round);
    const auto below = [&](std::size_t d, int most) {
      return static_cast<std::size_t>((draws[d] + 1) / 2 * most);
    };
    const std::size_t group = std::min(1 + below(0, 3), jobs.size() - next);
    if (below(1, 2) == 0 && group > 0) {
      const auto entering = tested.request(jobs.subspan(next, group));
      const bool has_active_units = search.active_units() > 0;
      const Admission admission = search.admit(entering.request);
      if (admission.ids.empty()) {
        EXPECT_LT(admission.fitting, static_cast<std::int64_t>(group));
        EXPECT_NE(admission.refusal.find("can enter the search"), std::string::npos);
        ++refusals;
        last_refusal = admission.refusal + " ";
      } else {
        EXPECT_TRUE(admission.refusal.empty()) << admission.refusal;
        for (const std::int64_t id : admission.ids) job_of[id] = next++;
        joined += has_active_units ? 1 : 0;
      }
    }
    search.step(static_cast<std::int64_t>(1 + below(2, 3)));
    if (below(3, 3) == 0) collect();
  }
  EXPECT_GT(refusals, 0) << "the limits were never reached";
  EXPECT_GT(joined, 5) << "units rarely joined other active units";
  EXPECT_EQ(search.free_units(), limits.units);
  EXPECT_EQ(search.free_cached_tokens(), cached_tokens);
  EXPECT_EQ(search.free_source_rows(), limits.source_rows);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    expect_same(found[i], tested.alone(jobs[i]), "sentence " + std::to_string(i));
  }
}

}  // namespace nunchi::testing
