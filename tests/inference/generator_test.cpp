// Continuing texts with a small untrained model.
#include "nunchi/inference/generator.h"

#include <algorithm>

#include "nunchi/base/random.h"
#include "nunchi/inference/scorer.h"
#include "nunchi/kernels/product.h"
#include "nunchi/text/unicode.h"
#include "tests/inference/small_translation.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

std::unique_ptr<Tokenizer> plain(TokenizerKind kind) {
  return make_tokenizer(learned_bytes({.kind = kind}), "the plain tokenizer");
}

struct SmallGenerator {
  explicit SmallGenerator(std::unique_ptr<Tokenizer> tokenizer = plain(TokenizerKind::characters),
                          std::int64_t positions = 160)
      : context({.threads = 1}), tokenizers(std::move(tokenizer)) {
    GptConfig config = small_gpt_config(tokenizers.target().vocabulary());
    config.max_positions = positions;
    model = make_small<Gpt>(context, config);
  }
  Generator generator(const GeneratorOptions& options) {
    return Generator(context, *model, tokenizers, options);
  }
  // Greedy continuation that recomputes the whole text for each token.
  Tokens recomputed(Tokens text, int count) {
    const std::size_t prompt = text.size();
    for (int i = 0; i < count; ++i) {
      const TokenBatch batch =
          make_token_batch(context, std::vector<Tokens>{text}, tokenizers.target().vocabulary());
      const Tensor logits = model->logits(model->hidden(batch), batch.rows).value();
      std::vector<double> scores = to_host_f64(logits.rows(batch.rows.rows - 1, 1));
      scores[1] = -INFINITY;
      text.push_back(static_cast<std::int32_t>(std::ranges::max_element(scores) - scores.begin()));
    }
    return Tokens(text.begin() + static_cast<std::ptrdiff_t>(prompt), text.end());
  }

  CpuContext context;
  Tokenizers tokenizers;
  std::unique_ptr<Gpt> model;
};

const SearchOptions kGreedy{.max_length = 30, .max_repeats = 0};
const SearchOptions kSampled{.sample = true, .seed = 3, .max_length = 30};

TEST(Generator, GeneratesTheMostLikelyTokens) {
  SmallGenerator s;
  const Continuation found = s.generator({.search = kGreedy}).generate("the dog");
  EXPECT_EQ(found.tokens, s.recomputed(s.tokenizers.target().encode("the dog"), 30));
  EXPECT_EQ(found.text, s.tokenizers.target().decode(found.tokens));
  EXPECT_LT(found.log_probability, 0);
}

TEST(Generator, AnEmptyPromptStartsALine) {
  SmallGenerator s;
  EXPECT_EQ(s.generator({.search = kGreedy}).generate("").tokens,
            s.recomputed({s.tokenizers.target().line_end()}, 30));
}

TEST(Generator, PartsAddUpToTheText) {
  for (const int positions : {160, 16}) {
    SmallGenerator s(positions == 16 ? byte_tokenizer() : plain(TokenizerKind::bytes), positions);
    for (const SearchOptions& search : {kGreedy, kSampled}) {
      Generator generator = s.generator({.search = search});
      std::string whole;
      int parts = 0;
      const Continuation found = generator.generate({.text = "눈 fox"}, [&](std::string_view part) {
        EXPECT_TRUE(is_valid_utf8(part));
        whole += part;
        ++parts;
        return true;
      });
      EXPECT_EQ(whole, found.text);
      EXPECT_GT(parts, 3);
      EXPECT_EQ(generator.generate("눈 fox").text, found.text) << "without a sink";
    }
  }
}

// Random tokens, added one to three at a time.
TEST(StreamedText, IsTheTextOfAllTokens) {
  std::vector<std::unique_ptr<Tokenizer>> tokenizers;
  tokenizers.push_back(plain(TokenizerKind::characters));
  tokenizers.push_back(plain(TokenizerKind::bytes));
  tokenizers.push_back(byte_tokenizer());
  tokenizers.push_back(letter_tokenizer());
  for (const auto& tokenizer : tokenizers) {
    Tokens tokens = tokenizer->encode("  눈치 the dog — naïve 🦊 fox");
    const philox::Key key = philox::key_of({.seed = 5});
    for (std::uint32_t i = 0; i < 300; ++i) {
      const auto words = philox::bits({i, 0, 0, 0}, key);
      tokens.push_back(static_cast<std::int32_t>(
          words[0] % static_cast<std::uint32_t>(tokenizer->vocabulary())));
      if (words[1] % 4 == 0) {
        for (const std::int32_t token : tokenizer->encode(" 눈 fox")) tokens.push_back(token);
      }
    }
    StreamedText streamed(*tokenizer);
    for (std::size_t i = 0; i < tokens.size();) {
      const std::size_t count = std::min(tokens.size() - i, 1 + i % 3);
      streamed.add(std::span<const std::int32_t>(tokens).subspan(i, count));
      i += count;
      ASSERT_EQ(streamed.text(), text_of(*tokenizer, std::span(tokens).first(i))) << i;
      ASSERT_EQ(streamed.token_count(), i);
    }
  }
}

TEST(Generator, TheSinkCanEndTheText) {
  SmallGenerator s;
  int parts = 0;
  const Continuation found =
      s.generator({.search = kSampled, .stop_at_end = false})
          .generate({.text = "a"}, [&](std::string_view) { return ++parts < 5; });
  EXPECT_EQ(parts, 5);
  EXPECT_LE(found.tokens.size(), 7u);
}

// Random draws do not depend on whether the end token ends the text.
void expect_ends_at_end_token(SmallGenerator& s) {
  const std::int32_t end = s.tokenizers.decoder().end;
  Generator ending = s.generator({.search = kSampled}),
            endless = s.generator({.search = kSampled, .stop_at_end = false});
  int ended = 0;
  for (std::int64_t number = 0; number < 20; ++number) {
    const Prompt prompt{.text = "the dog", .number = number};
    const Continuation all = endless.generate(prompt), found = ending.generate(prompt);
    const auto first_end = std::ranges::find(all.tokens, end);
    EXPECT_EQ(found.tokens, Tokens(all.tokens.begin(), first_end));
    EXPECT_EQ(found.ended, first_end != all.tokens.end());
    EXPECT_FALSE(all.ended);
    EXPECT_EQ(all.tokens.size(), 30u);
    EXPECT_EQ(ending.generate(std::span(&prompt, 1))[0].text, found.text);
    std::string whole;
    ending.generate(prompt, [&](std::string_view part) {
      whole += part;
      return true;
    });
    EXPECT_EQ(whole, found.text);
    ended += found.ended ? 1 : 0;
  }
  EXPECT_GT(ended, 2) << "the model hardly ever generates the end token";
}

TEST(Generator, EndsAtTheEndToken) {
  SmallGenerator s;
  expect_ends_at_end_token(s);
}

// Without eos_token_id, the </s> of such a tokenizer is the line break.
TEST(Generator, EndsAtTheEndTokenOfTheGenerationConfig) {
  SmallGenerator s(letter_tokenizer());
  const Continuation lines = s.generator({.search = kSampled}).generate("the dog");
  EXPECT_FALSE(lines.ended);
  EXPECT_EQ(lines.tokens.size(), 30u);
  s.tokenizers = Tokenizers(letter_tokenizer(), GenerationTokens{.end = 2});
  expect_ends_at_end_token(s);
}

TEST(Generator, EndsBeforeAStop) {
  SmallGenerator s;
  const std::string whole = s.generator({.search = kSampled}).generate("a dog").text;
  for (const std::size_t at : {0, 1, 10, 25}) {
    const std::string stop = whole.substr(at, 3);
    Generator generator = s.generator({.search = kSampled, .stops = {"not there", stop}});
    const std::string expected = whole.substr(0, whole.find(stop));
    const Continuation alone = generator.generate("a dog");
    EXPECT_EQ(alone.text, expected);
    std::string streamed;
    generator.generate({.text = "a dog"}, [&](std::string_view part) {
      streamed += part;
      return true;
    });
    EXPECT_EQ(streamed, expected);
    const std::vector<Prompt> prompts{{.text = "a dog"}, {.text = "x", .number = 1}};
    const Continuation among_others = generator.generate(prompts)[0];
    EXPECT_EQ(among_others.text, expected);
    EXPECT_EQ(among_others.tokens, alone.tokens);
    EXPECT_NEAR(among_others.log_probability, alone.log_probability, 1e-9);
    EXPECT_LT(alone.tokens.size(), 30u);
  }
}

TEST(Generator, ContinuesWhenTheContextIsFull) {
  SmallGenerator s(plain(TokenizerKind::characters), 16);
  const Continuation found = s.generator({.search = kGreedy}).generate("the dog");
  ASSERT_EQ(found.tokens.size(), 30u);
  // 9 tokens fill the 16 positions; the model then continues from the last 8.
  const Tokens prompt = s.tokenizers.target().encode("the dog");
  const Tokens first = s.recomputed(prompt, 9);
  EXPECT_EQ(Tokens(found.tokens.begin(), found.tokens.begin() + 9), first);
  const Tokens second = s.recomputed(Tokens(first.end() - 8, first.end()), 8);
  EXPECT_EQ(Tokens(found.tokens.begin() + 9, found.tokens.begin() + 17), second);
}

TEST(Generator, UsesTheEndOfALongPrompt) {
  SmallGenerator s(plain(TokenizerKind::characters), 16);
  Generator generator = s.generator({.search = kGreedy});
  const std::string prompt = "the quick brown fox jumps";
  EXPECT_EQ(generator.generate(prompt).tokens[0],
            s.recomputed(s.tokenizers.target().encode(prompt.substr(prompt.size() - 8)), 1)[0]);
  EXPECT_EQ(generator.counts().cut, 1);
}

TEST(Generator, APromptHasTheSameTextInEveryBatch) {
  SmallGenerator s;
  std::vector<Prompt> prompts;
  for (const std::string& text : some_texts()) {
    prompts.push_back({.text = text, .number = static_cast<std::int64_t>(prompts.size())});
  }
  for (const SearchOptions& search :
       {kGreedy, kSampled, SearchOptions{.beam_size = 3, .max_length = 12}}) {
    Generator generator = s.generator({.search = search, .batch_prompts = 4});
    const std::vector<Continuation> together = generator.generate(prompts);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      EXPECT_EQ(generator.generate(prompts[i]).text, together[i].text) << prompts[i].text;
    }
  }
}

TEST(Generator, EndOfLineTokensAreLineBreaks) {
  const auto tokenizer = byte_tokenizer();
  const std::int32_t end = tokenizer->line_end();
  Tokens tokens = tokenizer->encode("the dog");
  tokens.push_back(end);
  tokens.push_back(end);
  for (const std::int32_t token : tokenizer->encode("a fox")) tokens.push_back(token);
  tokens.push_back(end);
  EXPECT_EQ(text_of(*tokenizer, tokens), "the dog\n\na fox\n");
  EXPECT_EQ(text_of(*tokenizer, {}), "");
  SmallGenerator s(byte_tokenizer());
  EXPECT_EQ(s.generator({.search = kGreedy}).generate("a fox\nthe").tokens.size(), 30u);
}

TEST(LineScorer, ScoresEqualThoseOfTheSearch) {
  SmallGenerator s;
  Generator generator = s.generator({.search = kGreedy});
  const LineScorer scorer(s.context, *s.model, s.tokenizers, {.batch_tokens = 50});
  const std::vector<std::string> lines = some_texts();
  const std::vector<PairScore> scores = scorer.score(lines);
  ASSERT_EQ(scores.size(), lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const PairScore alone = scorer.score(std::span(lines).subspan(i, 1))[0];
    EXPECT_NEAR(alone.log_probability, scores[i].log_probability,
                kernels::rows_are_independent() ? 0 : 1e-5);
    EXPECT_EQ(scores[i].pieces.size(), s.tokenizers.target().encode(lines[i]).size() + 1);
    EXPECT_EQ(scores[i].pieces.back(), "<0x0A>");
  }
  // The text after an empty prompt is scored like a line.
  const Continuation found = generator.generate("");
  Tokens text = found.tokens;
  text.insert(text.begin(), s.tokenizers.target().line_end());
  const TextBatch batch =
      make_text_batch(s.context, std::vector<Tokens>{text}, s.tokenizers.target().vocabulary());
  EXPECT_NEAR(-to_host<double>(s.model->loss(batch, {}).total.value())[0], found.log_probability,
              1e-3);
}

TEST(LineScorer, LongLinesAreCut) {
  SmallGenerator s(plain(TokenizerKind::characters), 16);
  const LineScorer scorer(s.context, *s.model, s.tokenizers, {});
  const auto scores = scorer.score(std::vector<std::string>{"the quick brown fox", "a fox"});
  EXPECT_TRUE(scores[0].cut);
  EXPECT_EQ(scores[0].pieces.size(), 16u);
  EXPECT_FALSE(scores[1].cut);
}

TEST(Generator, RefusesModelsAndOptionsThatDoNotFit) {
  SmallGenerator s;
  EXPECT_TRUE(error_of([&] { s.generator({.search = kGreedy, .stops = {""}}); }).find("empty") !=
              std::string::npos);
  SmallTranslation translation;
  EXPECT_NE(error_of([&] {
              Generator(translation.context, *translation.model, translation.tokenizers, {});
            }).find("cannot continue a text"),
            std::string::npos);
  const Tokenizers other(plain(TokenizerKind::bytes));
  EXPECT_NE(
      error_of([&] { Generator(s.context, *s.model, other, {}); }).find("do not belong together"),
      std::string::npos);
}

}  // namespace
}  // namespace nunchi::testing
