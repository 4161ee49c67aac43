// A language model continues texts on the GPU, in several batches and with a SearchWatch.
#include "nunchi/decoding/searcher.h"
#include "tests/kernels/cuda/compare.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

constexpr std::int64_t kVocabulary = 211;

GptConfig config_of() {
  GptConfig config = small_gpt_config(kVocabulary);
  config.width = 128;
  config.heads = 4;
  config.feed_forward = 256;
  return config;
}

// Several batches with one searcher. Some prompts are longer than earlier ones, so memory must
// grow.
std::vector<Tokens> found_on(ContextBase& context, const SearchOptions& options) {
  const auto model = make_small<Gpt>(context, config_of());
  Searcher searcher(*model, context, options);
  std::vector<Tokens> all;
  for (const std::int32_t length : {3, 3, 70, 5, 110, 1}) {
    const std::vector<Tokens> prompts =
        sentences_of({length, length + 2, 1}, kVocabulary, static_cast<std::uint64_t>(length));
    for (const Hypotheses& found :
         searcher({.prefixes = prompts, .tokens = {.suppressed = kTokens.suppressed}})) {
      all.push_back(found.front().tokens);
    }
  }
  return all;
}

TEST(CudaModelGpt, SearchesFindTheSameAsOnTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const SearchOptions& options :
       {SearchOptions{.max_length = 40}, SearchOptions{.beam_size = 3, .max_length = 25},
        SearchOptions{.sample = true, .top_k = 20, .seed = 5, .max_length = 40}}) {
    CpuContext cpu({.threads = 2});
    CudaContext cuda({.precision = Precision::f32});
    EXPECT_EQ(found_on(cuda, options), found_on(cpu, options));
  }
}

TEST(CudaModelGpt, AWatchSeesPrefixesOfTheResultAndCanStopTheSearch) {
  SKIP_WITHOUT_GPU();
  CudaContext context({.precision = Precision::f32});
  const auto model = make_small<Gpt>(context, config_of());
  const std::vector<Tokens> prompts = sentences_of({6}, kVocabulary, 2);
  const SearchOptions options{.max_length = 60};
  const auto found = [&](const SearchWatch& watch) {
    return search(
               *model, context,
               {.prefixes = prompts, .tokens = {.suppressed = kTokens.suppressed}, .watch = watch},
               options)[0][0]
        .tokens;
  };
  const Tokens whole = found({});
  std::size_t calls = 0;
  EXPECT_EQ(found([&](std::span<const std::int32_t> tokens) {
              EXPECT_TRUE(std::ranges::equal(tokens, std::span(whole).first(tokens.size())));
              ++calls;
              return true;
            }),
            whole);
  EXPECT_GE(calls, 6u);
  const Tokens stopped =
      found([](std::span<const std::int32_t> tokens) { return tokens.size() < 20; });
  EXPECT_GE(stopped.size(), 20u);
  EXPECT_LT(stopped.size(), 36u);
  EXPECT_TRUE(std::ranges::equal(stopped, std::span(whole).first(stopped.size())));
}

}  // namespace
}  // namespace nunchi::testing
