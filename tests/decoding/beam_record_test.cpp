#include "nunchi/decoding/beam_record.h"

#include "nunchi/base/error.h"
#include "tests/models/every_model.h"

namespace nunchi::testing {
namespace {

class BeamRecordOf : public ::testing::TestWithParam<std::string_view> {};

TEST_P(BeamRecordOf, DoesNotChangeTheSearchAndContainsItsResult) {
  CpuContext context({.threads = 1});
  for (const NamedModel& named : models_of(GetParam())) {
    const AnyModel model(context, named);
    if (!model.generates()) GTEST_SKIP() << "the family does not generate";
    SCOPED_TRACE(named.name);
    const std::vector<Tokens> sources = sentences_of({5}, 37, 1), prefixes{{4}};
    for (const int beam_size : {1, 2, 4}) {
      Searcher searcher = model.searcher({.beam_size = beam_size, .max_length = 7});
      SearchInput input{.source = model.source(sources), .prefixes = prefixes, .tokens = kTokens};
      if (!model.has_source()) input.tokens.start = kNoToken;
      const Hypothesis plain = searcher(input)[0][0];
      BeamRecord record;
      input.record = &record;
      const Hypothesis recorded = searcher(input)[0][0];
      EXPECT_EQ(plain.tokens, recorded.tokens);
      EXPECT_EQ(plain.score, recorded.score);
      EXPECT_EQ(record.beam_size, beam_size);
      // Follows the result through the record.
      std::int64_t row = 0;
      double score = 0;
      Tokens rest(recorded.tokens.begin() + 1, recorded.tokens.end());
      if (recorded.ended_by_eos) rest.push_back(kTokens.end);
      ASSERT_LE(rest.size(), record.steps.size());
      for (std::size_t t = 0; t < rest.size(); ++t) {
        const auto found = std::ranges::find_if(record.steps[t], [&](const BeamCandidate& each) {
          return each.parent == row && each.token == rest[t];
        });
        ASSERT_NE(found, record.steps[t].end());
        score += found->log_probability;
        row = found->row;
        const bool is_last = t + 1 == rest.size();
        EXPECT_EQ(found->outcome, !is_last                ? BeamCandidate::Outcome::kept
                                  : recorded.ended_by_eos ? BeamCandidate::Outcome::ended
                                                          : BeamCandidate::Outcome::cut);
      }
      EXPECT_NEAR(score, recorded.log_probability, 1e-6);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, BeamRecordOf, ::testing::ValuesIn(kFamilies),
                         [](const auto& info) { return std::string(info.param); });

TEST(BeamRecord, OfSeveralSentencesIsRefused) {
  CpuContext context({.threads = 1});
  const AnyModel model(context, models_of("transformer")[0]);
  const std::vector<Tokens> sources = sentences_of({5, 3}, 37, 1);
  BeamRecord record;
  Searcher searcher = model.searcher({.max_length = 4});
  EXPECT_THROW(searcher({.source = model.source(sources), .tokens = kTokens, .record = &record}),
               Error);
}

}  // namespace
}  // namespace nunchi::testing
