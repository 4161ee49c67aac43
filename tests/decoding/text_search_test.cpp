// Search with a language model, which has no source.
#include <algorithm>

#include "nunchi/decoding/searcher.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

constexpr std::int64_t kVocabulary = 37;
// A text begins with its prompt and has no end.
const DecoderTokens kNoEnd = {.suppressed = kTokens.suppressed};

struct SmallText {
  explicit SmallText(const GptConfig& config = small_gpt_config(), DType dtype = DType::f64)
      : context({.threads = 2}), model(make_small<Gpt>(context, config, {.dtype = dtype})) {}

  std::vector<Hypotheses> found(const std::vector<Tokens>& prompts, const SearchOptions& options) {
    return search(*model, context, {.prefixes = prompts, .tokens = kNoEnd}, options);
  }
  // The model's scores of the token after `text`, recomputed from the whole text.
  std::vector<double> logits_after(const Tokens& text) {
    const TokenBatch batch = make_token_batch(context, std::vector<Tokens>{text}, kVocabulary);
    const Tensor logits = model->logits(model->hidden(batch), batch.rows).value();
    return to_host_f64(logits.rows(batch.rows.rows - 1, 1));
  }

  CpuContext context;
  std::unique_ptr<Gpt> model;
};

TEST(TextDecoding, GreedySearchTakesTheLikeliestToken) {
  SmallText s;
  const std::vector<Tokens> prompts = sentences_of({3, 9}, kVocabulary, 8);
  const auto found = s.found(prompts, {.max_length = 12, .max_repeats = 0});
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    Tokens text = prompts[i];
    for (int t = 0; t < 12; ++t) {
      std::vector<double> scores = s.logits_after(text);
      scores[1] = -INFINITY;  // <s> is suppressed
      text.push_back(static_cast<std::int32_t>(std::ranges::max_element(scores) - scores.begin()));
    }
    EXPECT_EQ(found[i].front().tokens, text);
    EXPECT_FALSE(found[i].front().ended_by_eos);
  }
}

TEST(TextDecoding, ATextIsTheSameInEveryBatch) {
  SmallText s(small_gpt_config(), DType::f32);
  const std::vector<Tokens> prompts = sentences_of({3, 9, 1, 40}, kVocabulary, 8);
  for (SearchOptions options :
       {SearchOptions{.max_length = 20}, SearchOptions{.beam_size = 3, .max_length = 9},
        SearchOptions{.sample = true, .seed = 4, .max_length = 20}}) {
    const auto together = s.found(prompts, options);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const std::vector<std::int64_t> number{static_cast<std::int64_t>(i)};
      const auto alone = search(
          *s.model, s.context,
          {.prefixes = std::span(prompts).subspan(i, 1), .numbers = number, .tokens = kNoEnd},
          options);
      EXPECT_EQ(alone[0][0].tokens, together[i][0].tokens);
    }
  }
}

TEST(TextDecoding, AWatchSeesTheTokensAndCanEndTheSearch) {
  SmallText s;
  const std::vector<Tokens> prompts{{5, 6, 7}};
  const SearchOptions options{.max_length = 30, .max_repeats = 0};
  const Tokens whole = s.found(prompts, options)[0][0].tokens;
  ASSERT_EQ(whole.size(), 33u);
  std::size_t last = 3;
  const auto stopped = search(*s.model, s.context,
                              {.prefixes = prompts,
                               .tokens = kNoEnd,
                               .watch =
                                   [&](std::span<const std::int32_t> tokens) {
                                     EXPECT_GT(tokens.size(), last);
                                     last = tokens.size();
                                     return tokens.size() < 13;
                                   }},
                              options)[0][0];
  EXPECT_EQ(stopped.tokens, Tokens(whole.begin(), whole.begin() + 13));
  double sum = 0;
  for (const float score : stopped.token_scores) sum += score;
  EXPECT_NEAR(sum, stopped.log_probability, 1e-4);
}

TEST(TextDecoding, ATextEndsAtTheModelsLastPosition) {
  GptConfig config = small_gpt_config();
  config.max_positions = 16;
  SmallText s(config);
  EXPECT_EQ(s.found({{5, 6, 7}}, {.max_length = 100, .max_repeats = 0})[0][0].tokens.size(), 16u);
  EXPECT_EQ(s.found({Tokens(15, 4)}, {.max_length = 100})[0][0].tokens.size(), 16u);
  EXPECT_NE(error_of([&] { s.found({Tokens(16, 4)}, {.max_length = 100}); }).find("too long"),
            std::string::npos);
}

TEST(TextDecoding, ALanguageModelTakesNoSource) {
  SmallText s;
  const TokenBatch source = make_token_batch(s.context, std::vector<Tokens>{{5}}, kVocabulary);
  const std::vector<Tokens> prompts{{5}};
  const auto search_with_source = [&] {
    search(*s.model, s.context, {.source = source, .prefixes = prompts, .tokens = kNoEnd}, {});
  };
  EXPECT_NE(error_of(search_with_source).find("takes no source"), std::string::npos);
}

TEST(TextDecoding, AnEmptyPromptIsAnError) {
  SmallText s;
  EXPECT_NE(error_of([&] {
              s.found({{5}, {}}, {});
            }).find("one of them is empty"),
            std::string::npos);
}

}  // namespace
}  // namespace nunchi::testing
