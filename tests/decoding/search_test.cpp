// Units enter and leave a search between steps.
#include "nunchi/decoding/search.h"

#include "nunchi/kernels/product.h"
#include "tests/decoding/random_admission.h"
#include "tests/decoding/recomputation.h"

namespace nunchi::testing {
namespace {

constexpr std::int64_t kVocabulary = 37;

TEST(Search, UnitsThatEnterAndLeaveAtRandomStepsGetTheSameResultsAsAlone) {
  if (!kernels::rows_are_independent())
    GTEST_SKIP() << "GEMM results depend on the number of rows here";
  SearchTestModel<Transformer> s(small_config());
  const SearchCase tested{
      .model = *s.model, .context = s.context, .source_vocabulary = kVocabulary};
  for (const int beam : {1, 3}) {
    const auto jobs = random_jobs(40, beam, true, kVocabulary);
    for (const std::uint64_t seed : {1, 2, 3}) {
      SCOPED_TRACE("beam " + std::to_string(beam) + ", seed " + std::to_string(seed));
      expect_same_results_as_alone(tested, jobs, beam, seed);
    }
  }
}

TEST(Search, RecurrentUnitsGetTheSameResultsAsAlone) {
  if (!kernels::rows_are_independent())
    GTEST_SKIP() << "GEMM results depend on the number of rows here";
  for (const RnnConfig& config : all_small_rnns()) {
    SCOPED_TRACE(ModelConfig(config)->to_json());
    SearchTestModel<Rnn> s(config);
    const SearchCase tested{
        .model = *s.model, .context = s.context, .source_vocabulary = kVocabulary};
    for (const int beam : {1, 3}) {
      expect_same_results_as_alone(tested, random_jobs(20, beam, true, kVocabulary), beam, 4);
    }
  }
}

TEST(Search, UnitsOfALanguageModelGetTheSameResultsAsAlone) {
  if (!kernels::rows_are_independent())
    GTEST_SKIP() << "GEMM results depend on the number of rows here";
  CpuContext context({.threads = 2});
  const auto model = make_small<Gpt>(context, small_gpt_config());
  for (const std::int32_t end : {kNoToken, kEnd}) {
    const SearchCase tested{
        .model = *model, .context = context, .tokens = {.end = end, .suppressed = {1, 5, 6}}};
    for (const int beam : {1, 3}) {
      expect_same_results_as_alone(tested, random_jobs(30, beam, false, kVocabulary), beam, 5);
    }
  }
}

struct Admitted {
  SearchTestModel<Transformer> s{small_config()};
  SearchCase tested{.model = *s.model, .context = s.context, .source_vocabulary = kVocabulary};

  // A sentence of `length` source tokens, </s> included, that gets exactly `tokens` tokens.
  static SearchJob job(std::int32_t length, std::int64_t tokens) {
    SearchJob job{.source = sentences_of({length - 1}, kVocabulary, 3)[0],
                  .options = {.min_length = tokens, .max_length = tokens}};
    job.source.push_back(kEnd);
    return job;
  }
  Admission admit(Search& search, const std::vector<SearchJob>& jobs) const {
    return search.admit(tested.request(jobs).request);
  }
};

TEST(Search, RefusesSentencesForWhichNoUnitIsFree) {
  const Admitted a;
  Search search(*a.s.model, a.tested.context,
                {.limits = {.units = 2, .max_tokens = 10, .source_rows = 100, .source_length = 10},
                 .tokens = kTokens});
  const std::vector<SearchJob> three(3, Admitted::job(4, 5));
  const Admission refused = a.admit(search, three);
  EXPECT_TRUE(refused.ids.empty());
  EXPECT_EQ(refused.fitting, 2);
  EXPECT_EQ(refused.refusal, "only 2 of 3 sentences can enter the search: all 2 units are taken.");
  EXPECT_EQ(search.free_units(), 2);
  EXPECT_EQ(search.free_source_rows(), 100);
  EXPECT_EQ(a.admit(search, {three[0], three[1]}).ids.size(), 2u);
  EXPECT_EQ(a.admit(search, {three[2]}).fitting, 0);
  while (search.step() > 0) {
  }
  // Units are free when their sentences were collected.
  EXPECT_EQ(a.admit(search, {three[2]}).fitting, 0);
  EXPECT_EQ(search.collect().size(), 2u);
  EXPECT_EQ(a.admit(search, {three[2]}).ids.size(), 1u);
}

TEST(Search, TheCacheIsAHardBound) {
  const Admitted a;
  // A sentence of 16 tokens reads 16: <s> and all but the last, two blocks of slots.
  Search search(*a.s.model, a.tested.context,
                {.limits = {.units = 8,
                            .max_tokens = 16,
                            .cached_tokens = 40,
                            .source_rows = 100,
                            .source_length = 10},
                 .tokens = kTokens});
  EXPECT_EQ(search.free_cached_tokens(), 40);
  EXPECT_EQ(a.admit(search, {Admitted::job(4, 16), Admitted::job(4, 16)}).ids.size(), 2u);
  EXPECT_EQ(search.free_cached_tokens(), 8);
  const Admission refused = a.admit(search, {Admitted::job(4, 16)});
  EXPECT_EQ(refused.refusal,
            "only 0 of 1 sentence can enter the search: a unit can need 16 slots of the cache, and "
            "8 of 40 are free.");
  EXPECT_EQ(a.admit(search, {Admitted::job(4, 8)}).ids.size(), 1u);
  EXPECT_EQ(search.free_cached_tokens(), 0);
  // Slots are free as soon as a unit has finished.
  for (int step = 0; step < 7; ++step) search.step();
  EXPECT_EQ(search.active_units(), 2);
  EXPECT_EQ(search.free_cached_tokens(), 8);
  while (search.step() > 0) {
  }
  EXPECT_EQ(search.free_cached_tokens(), 40);
}

// A long sentence in a batch of short ones: it grows into the memory that they have given back.
TEST(Search, SlotsOfFinishedUnitsAreReusedWhileOthersContinue) {
  const Admitted a;
  Search search(*a.s.model, a.tested.context,
                {.limits = {.units = 9, .max_tokens = 64, .source_rows = 100, .source_length = 10},
                 .tokens = kTokens});
  std::vector<SearchJob> jobs(8, Admitted::job(4, 8));
  jobs.push_back(Admitted::job(4, 64));
  ASSERT_EQ(a.admit(search, jobs).ids.size(), 9u);
  const std::int64_t free = search.free_cached_tokens(), free_rows = search.free_source_rows();
  while (search.step() > 1) {
  }
  EXPECT_EQ(search.active_units(), 1);
  EXPECT_EQ(search.free_cached_tokens(), free + 8 * 8);
  EXPECT_EQ(search.free_source_rows(), free_rows + 8 * 4);
  const auto in_use = a.tested.context.arena().in_use();
  const auto requests = a.tested.context.arena().system_requests();
  int steps = 0;
  while (search.step() > 0) {
    ++steps;
    EXPECT_LE(a.tested.context.arena().in_use(), in_use) << "step " << steps;
  }
  EXPECT_GT(steps, 50);
  EXPECT_EQ(a.tested.context.arena().system_requests(), requests);
}

TEST(Search, TheMemoryOfSourcesIsAHardBound) {
  const Admitted a;
  Search search(*a.s.model, a.tested.context,
                {.limits = {.units = 8, .max_tokens = 16, .source_rows = 12, .source_length = 10},
                 .tokens = kTokens});
  EXPECT_EQ(a.admit(search, {Admitted::job(5, 3), Admitted::job(6, 9)}).ids.size(), 2u);
  EXPECT_EQ(
      a.admit(search, {Admitted::job(5, 3)}).refusal,
      "only 0 of 1 sentence can enter the search: a source needs 5 adjacent rows, and 1 of 12 "
      "are free.");
  for (int step = 0; step < 2; ++step) search.step();
  EXPECT_EQ(search.free_source_rows(), 6);
  EXPECT_EQ(a.admit(search, {Admitted::job(5, 3)}).ids.size(), 1u);
}

TEST(Search, ASentenceThatCanNeverFitIsAnError) {
  const Admitted a;
  Search search(*a.s.model, a.tested.context,
                {.limits = {.units = 2, .max_tokens = 10, .source_rows = 30, .source_length = 6},
                 .tokens = kTokens});
  const auto complaint = [&](const SearchJob& job) {
    return error_of([&] { a.admit(search, {job}); });
  };
  EXPECT_EQ(complaint(Admitted::job(4, 11)),
            "a sentence needs 11 tokens, but this search has 10 in all.");
  EXPECT_EQ(complaint(Admitted::job(7, 5)),
            "a sentence needs 7 rows for its source, but this search has 6 in all.");
  SearchJob job = Admitted::job(4, 5);
  job.options.sample = true;
  job.options.n_best = 3;
  EXPECT_EQ(complaint(job), "a sentence needs 3 units, but this search has 2 in all.");
  Search small(*a.s.model, a.tested.context,
               {.limits = {.units = 3,
                           .max_tokens = 20,
                           .cached_tokens = 32,
                           .source_rows = 30,
                           .source_length = 6},
                .tokens = kTokens});
  job = Admitted::job(4, 16);
  job.options.sample = true;
  job.options.n_best = 3;
  EXPECT_EQ(error_of([&] { a.admit(small, {job}); }),
            "a sentence needs 48 slots of the cache, but this search has 32 in all.");
  job = Admitted::job(4, 5);
  job.options.beam_size = 2;
  EXPECT_EQ(complaint(job),
            "a sentence with a beam size of 2 cannot enter a search with one of 1.");
  EXPECT_EQ(search.free_units(), 2);
}

// Such sentences finish in the step in which they enter, so that no other step is ever taken.
TEST(Search, SentencesOfOneTokenCanEnterWithoutEnd) {
  const Admitted a;
  Search search(*a.s.model, a.tested.context,
                {.limits = {.units = 2, .max_tokens = 10, .source_rows = 30, .source_length = 6},
                 .tokens = kTokens});
  for (int i = 0; i < 10; ++i) {
    const Admission admission = a.admit(search, {Admitted::job(4, 1)});
    ASSERT_EQ(admission.ids.size(), 1u) << admission.refusal;
    EXPECT_EQ(search.step(), 0);
    const auto found = search.collect();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].hypotheses[0].tokens.size(), 1u);
  }
}

TEST(Search, ShowsASentenceAsItGrows) {
  const Admitted a;
  Search search(*a.s.model, a.tested.context,
                {.limits = {.units = 3, .max_tokens = 10, .source_rows = 30, .source_length = 10},
                 .tokens = kTokens});
  const std::int64_t first = a.admit(search, {Admitted::job(4, 3), Admitted::job(7, 10)}).ids[0];
  std::vector<Tokens> seen;
  while (search.step() > 0) {
    if (const auto current = search.current_hypothesis(first + 1)) seen.push_back(current->tokens);
  }
  const auto found = search.collect();
  ASSERT_EQ(found.size(), 2u);
  ASSERT_EQ(seen.size(), 8u);  // with 2 to 9 tokens
  const Tokens& whole = found[1].hypotheses[0].tokens;
  for (const Tokens& part : seen) {
    EXPECT_EQ(part, Tokens(whole.begin(), whole.begin() + std::ssize(part)));
  }
}

TEST(Search, AClearedSearchIsEmptyAndGivesTheSameResults) {
  const Admitted a;
  Search search(*a.s.model, a.tested.context,
                {.limits = {.units = 3, .max_tokens = 10, .source_rows = 30, .source_length = 10},
                 .tokens = kTokens});
  const SearchJob job = Admitted::job(7, 10);
  for (const int steps : {1, 2, 5}) {
    a.admit(search, {Admitted::job(4, 9), job});
    for (int i = 0; i < steps; ++i) search.step();
    search.clear();
    EXPECT_EQ(search.active_units(), 0);
    EXPECT_EQ(search.free_units(), 3);
    EXPECT_EQ(search.free_source_rows(), 30);
    a.admit(search, {job});
    while (search.step() > 0) {
    }
    const auto found = search.collect();
    ASSERT_EQ(found.size(), 1u);
    expect_same(found[0].hypotheses, a.tested.alone(job), "after " + std::to_string(steps));
  }
}

}  // namespace
}  // namespace nunchi::testing
