// Units enter and leave a search on the GPU between steps; with a deterministic context each gets
// the bits that it gets alone.
#include "nunchi/decoding/search.h"

#include "tests/decoding/random_admission.h"
#include "tests/kernels/cuda/compare.h"

namespace nunchi::testing {
namespace {

constexpr std::int64_t kVocabulary = 211;

TransformerConfig wide_config() {
  TransformerConfig config = small_config(kVocabulary);
  config.width = 128;
  config.heads = 4;
  config.feed_forward = 256;
  return config;
}

TEST(CudaSearch, UnitsThatEnterAndLeaveAtRandomStepsGetTheSameResultsAsAlone) {
  SKIP_WITHOUT_GPU();
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    CudaContext context({.precision = precision, .deterministic = true});
    const auto model = make_small<Transformer>(context, wide_config());
    const SearchCase tested{.model = *model, .context = context, .source_vocabulary = kVocabulary};
    for (const int beam : {1, 3}) {
      const auto jobs = random_jobs(40, beam, true, kVocabulary);
      for (const std::uint64_t seed : {1, 2}) {
        SCOPED_TRACE("beam " + std::to_string(beam) + ", seed " + std::to_string(seed));
        expect_same_results_as_alone(tested, jobs, beam, seed);
      }
    }
  }
}

TEST(CudaSearch, RecurrentUnitsGetTheSameResultsAsAlone) {
  SKIP_WITHOUT_GPU();
  for (const RnnConfig& config : all_small_rnns(kVocabulary)) {
    SCOPED_TRACE(ModelConfig(config)->to_json());
    CudaContext context({.precision = Precision::f32, .deterministic = true});
    const auto model = make_small<Rnn>(context, config);
    const SearchCase tested{.model = *model, .context = context, .source_vocabulary = kVocabulary};
    expect_same_results_as_alone(tested, random_jobs(20, 3, true, kVocabulary), 3, 4);
  }
}

TEST(CudaSearch, UnitsOfALanguageModelGetTheSameResultsAsAlone) {
  SKIP_WITHOUT_GPU();
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    CudaContext context({.precision = precision, .deterministic = true});
    const auto model = make_small<Gpt>(context, small_gpt_config(kVocabulary));
    const SearchCase tested{
        .model = *model, .context = context, .tokens = {.suppressed = {1, 5, 6}}};
    for (const int beam : {1, 3}) {
      expect_same_results_as_alone(tested, random_jobs(60, beam, false, kVocabulary), beam, 5);
    }
  }
}

}  // namespace
}  // namespace nunchi::testing
