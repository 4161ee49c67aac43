// Special tokens are data: a model can be trained and can translate with any ids.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "nunchi/decoding/generation_config.h"
#include "nunchi/inference/pipeline.h"
#include "nunchi/models/format/folder.h"
#include "nunchi/text/learn_tokenizer.h"
#include "nunchi/training/learner.h"
#include "nunchi/training/objectives/translation.h"
#include "tests/files.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

constexpr SpecialTokens kUnusualTokens = {.unknown = 5, .begin = 9, .end = 4, .pad = 7};

struct LinePair {
  std::string source, target;
};

// Lines of one to three words and their translations, word for word.
std::vector<LinePair> some_pairs(int count, std::uint64_t seed) {
  const std::vector<LinePair> words = {
      {"cat", "chat"}, {"dog", "chien"}, {"bird", "oiseau"}, {"tree", "arbre"}};
  std::vector<LinePair> pairs(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto draws = random_values<double>(5, seed * 1000 + i);
    const auto length = 1 + static_cast<std::size_t>((draws[4] + 1) * 1.5);
    for (std::size_t w = 0; w < length; ++w) {
      const auto& [source, target] =
          words[static_cast<std::size_t>((draws[w] + 1) / 2 * static_cast<double>(words.size()))];
      pairs[i].source += (w > 0 ? " " : "") + source;
      pairs[i].target += (w > 0 ? " " : "") + target;
    }
  }
  return pairs;
}

std::unique_ptr<Tokenizer> tokenizer_with(const SpecialTokens& special) {
  const std::vector<LinePair> pairs = some_pairs(50, 1);
  std::size_t next = 0;
  const auto next_line = [&](std::string& line) {
    if (next == 2 * pairs.size()) return false;
    line = next % 2 == 0 ? pairs[next / 2].source : pairs[next / 2].target;
    ++next;
    return true;
  };
  const TokenizerOptions options{.vocabulary = 50, .special = special, .byte_fallback = false};
  return make_tokenizer(learn_tokenizer(options, next_line).bytes, "the tokenizer");
}

// A model that has learned to translate these lines.
struct Trained {
  Trained(const SpecialTokens& special, const GenerationTokens& tokens)
      : context({.threads = 1}), tokenizers(tokenizer_with(special), tokens) {
    TransformerConfig config = small_config(tokenizers.target().vocabulary());
    config.norm_placement = nn::NormPlacement::pre;
    model = make_small<Transformer>(context, config, {.gradients = true});
    const TranslationObjective objective(*model, context, tokenizers.decoder(), 0);
    SingleProcess communicator;
    Learner learner(*model, objective, {.adam = {.max_norm = 1}}, communicator);
    constexpr std::uint64_t kSteps = 400;
    for (std::uint64_t step = 1; step <= kSteps; ++step) {
      HostBatch batch;
      std::vector<Tokens> sources;
      for (const auto& [source, target] : some_pairs(24, 1 + step)) {
        Tokens& tokens_of_source = sources.emplace_back(tokenizers.source().encode(source));
        tokens_of_source.push_back(special.end);
        batch.targets.push_back(tokenizers.target().encode(target));
      }
      batch.sources = std::move(sources);
      learner.step(std::span(&batch, 1), {.seed = 1, .step = step},
                   3e-3 * static_cast<double>(kSteps - step) / kSteps);
    }
  }

  // The fraction of lines that are translated without a mistake.
  double quality() {
    Translator translator(context, *model, tokenizers, {.search = {.beam_size = 2}});
    const std::vector<LinePair> lines = some_pairs(50, 999);
    const auto right = std::ranges::count_if(lines, [&](const LinePair& line) {
      return translator.translate(line.source).text == line.target;
    });
    return static_cast<double>(right) / static_cast<double>(lines.size());
  }

  CpuContext context;
  Tokenizers tokenizers;
  std::unique_ptr<Transformer> model;
};

// The decoder starts with <pad>, as Marian's and T5's do.
Trained& unusual_model() {
  static Trained trained(kUnusualTokens, {.decoder_start = kUnusualTokens.pad});
  return trained;
}

TEST(SpecialTokens, AnyIdsTrainAndTranslateAsWellAsTheUsualOnes) {
  Trained& unusual = unusual_model();
  EXPECT_EQ(unusual.tokenizers.source().special(), kUnusualTokens);
  EXPECT_EQ(unusual.tokenizers.decoder().start, kUnusualTokens.pad);
  EXPECT_EQ(unusual.tokenizers.decoder().suppressed,
            (Tokens{kUnusualTokens.pad, kUnusualTokens.begin}));
  Trained usual(kUsualSpecialTokens, {});
  EXPECT_EQ(usual.tokenizers.decoder(), kTokens);
  EXPECT_GE(usual.quality(), 0.9);
  EXPECT_GE(unusual.quality(), 0.9);
}

// The scorer reads and ends targets as the search does.
TEST(SpecialTokens, TheScorerAgreesWithTheSearch) {
  Trained& unusual = unusual_model();
  Translator translator(unusual.context, *unusual.model, unusual.tokenizers, {});
  const Scorer scorer(unusual.context, *unusual.model, unusual.tokenizers, {});
  const Translation found = translator.translate("cat dog tree");
  const std::vector<TextPair> pairs{{.source = "cat dog tree", .target = found.text}};
  EXPECT_NEAR(scorer.score(pairs)[0].log_probability, found.log_probability, 1e-4);
  EXPECT_EQ(found.pieces.back(), "</s>");
}

TEST(SpecialTokens, AreSavedInTheModelFolder) {
  Trained& unusual = unusual_model();
  const TemporaryFolder folder;
  save_model(*unusual.model, folder.path());
  save_tokenizers(unusual.tokenizers, folder.path());
  save_generation_config({}, unusual.tokenizers.generation_tokens(), folder.path());
  const Pipeline read = Pipeline::open(folder.path());
  EXPECT_EQ(read.tokenizers().decoder(), unusual.tokenizers.decoder());
  Translator before(unusual.context, *unusual.model, unusual.tokenizers, {});
  EXPECT_EQ(before.translate("tree bird").text, read.translator().translate("tree bird").text);
  // Ids that the tokenizer has anyway are not written.
  std::ostringstream json;
  json << std::ifstream(folder / kGenerationConfig).rdbuf();
  EXPECT_NE(json.str().find("\"decoder_start_token_id\": 7"), std::string::npos) << json.str();
  EXPECT_EQ(json.str().find("eos_token_id"), std::string::npos) << json.str();
}

TEST(SpecialTokens, TheFoldersOverrideTheTokenizers) {
  const DecoderTokens tokens = decoder_tokens(
      {.begin = 20, .end = 21, .pad = 22, .forced_first = 23, .suppressed = {30, 21, 8}},
      kUnusualTokens);
  EXPECT_EQ(
      tokens,
      (DecoderTokens{.start = 20, .end = 21, .forced_first = 23, .suppressed = {8, 20, 22, 30}}));
  EXPECT_EQ(decoder_tokens({.unknown = 2, .end = 1, .pad = 0}),
            (DecoderTokens{.start = 0, .end = 1, .suppressed = {0}}));
  EXPECT_EQ(decoder_tokens({.unknown = 2, .end = 1}), (DecoderTokens{.start = 1, .end = 1}));
}

TEST(SpecialTokens, OutsideOfTheVocabularyAreRefused) {
  EXPECT_NE(error_of([] {
              Tokenizers(tokenizer_with(kUsualSpecialTokens), GenerationTokens{.forced_first = 50});
            }).find("the special token 50"),
            std::string::npos);
}

// Searches of every kind, over a model whose weights are random.
std::vector<SearchOptions> every_search() {
  return {{.max_length = 20},
          {.beam_size = 4, .n_best = 4, .max_length = 12},
          {.n_best = 3, .sample = true, .seed = 3, .max_length = 20}};
}

TEST(SpecialTokens, SuppressedTokensAreNeverGenerated) {
  CpuContext context({.threads = 2});
  const auto model = make_small<Transformer>(context, small_config());
  const TokenBatch source = make_token_batch(context, sentences_of({5, 1, 9}, 37, 3), 37);
  for (const SearchOptions& options : every_search()) {
    DecoderTokens tokens = kTokens;
    // Each round also suppresses the first tokens of the round before.
    for (int round = 0; round < 4; ++round) {
      Tokens first_tokens;
      for (const Hypotheses& found :
           search(*model, {.source = source, .tokens = tokens}, options)) {
        for (const Hypothesis& hypothesis : found) {
          for (const std::int32_t token : hypothesis.tokens) {
            EXPECT_FALSE(std::ranges::binary_search(tokens.suppressed, token)) << token;
          }
          if (!hypothesis.tokens.empty()) first_tokens.push_back(hypothesis.tokens.front());
        }
      }
      tokens.suppress(first_tokens);
    }
    EXPECT_GT(tokens.suppressed.size(), 4u);
  }
}

TEST(SpecialTokens, AForcedFirstTokenIsAlwaysFirst) {
  CpuContext context({.threads = 2});
  const auto model = make_small<Transformer>(context, small_config());
  const TokenBatch source = make_token_batch(context, sentences_of({5, 1, 9}, 37, 3), 37);
  const std::vector<Tokens> prefixes = {{8}, {}, {9, 10}};
  DecoderTokens forced = kTokens;
  forced.forced_first = 29;
  for (const SearchOptions& options : every_search()) {
    const auto found =
        search(*model, {.source = source, .prefixes = prefixes, .tokens = forced}, options);
    for (std::size_t b = 0; b < found.size(); ++b) {
      for (const Hypothesis& hypothesis : found[b]) {
        ASSERT_GT(hypothesis.tokens.size(), prefixes[b].size());
        EXPECT_EQ(hypothesis.tokens.front(), 29);
        EXPECT_TRUE(
            std::equal(prefixes[b].begin(), prefixes[b].end(), hypothesis.tokens.begin() + 1));
      }
    }
  }
}

}  // namespace
}  // namespace nunchi::testing
