#include "nunchi/inference/ensemble.h"

#include <thread>

#include "nunchi/decoding/generation_config.h"
#include "nunchi/kernels/product.h"
#include "tests/inference/small_translation.h"

namespace nunchi::testing {
namespace {

// Two folders with the same target tokenizer: a Transformer with one tokenizer for both sides, and
// an RNN whose source tokenizer splits text differently.
class EnsembleFolders : public ::testing::Test {
 protected:
  EnsembleFolders() {
    small_.save(first_.path());
    CpuContext context({.threads = 1});
    const Tokenizers tokenizers(letter_tokenizer(), byte_tokenizer());
    RnnConfig config = small_rnn(CellKind::gru, RnnAttention::additive);
    config.tied_embeddings = TiedEmbeddings::target;
    config.source_vocabulary = tokenizers.source().vocabulary();
    config.target_vocabulary = tokenizers.target().vocabulary();
    save_model(*make_small<Rnn>(context, config), second_.path());
    save_tokenizers(tokenizers, second_.path());
  }

  Ensemble both() const { return Ensemble::open({first_.path(), second_.path()}, {.threads = 1}); }

  SmallTranslation small_;
  TemporaryFolder first_, second_;
};

TEST_F(EnsembleFolders, OneFolderTranslatesAsAPipelineDoes) {
  const Ensemble one = Ensemble::open({first_.path()}, {.threads = 1});
  EXPECT_TRUE(same(one.translator({.search = {.max_length = 12}}).translate("the old fox"),
                   small_.translator().translate("the old fox")));
}

TEST_F(EnsembleFolders, OneFolderTwiceTranslatesAsOnce) {
  const Ensemble twice = Ensemble::open({first_.path(), first_.path()}, {.threads = 1});
  const TranslatorOptions options{.search = {.beam_size = 3, .max_length = 12}};
  for (const std::string& text : some_texts()) {
    const Translation expected = small_.translator(options).translate(text),
                      found = twice.translator(options).translate(text);
    EXPECT_EQ(found.text, expected.text);
    EXPECT_NEAR(found.score, expected.score, 1e-4);
  }
}

TEST_F(EnsembleFolders, ALineIsTheSameInEveryBatchAndOrder) {
  if (!kernels::rows_are_independent())
    GTEST_SKIP() << "GEMM results depend on the number of rows here";
  const Ensemble ensemble = both();
  std::vector<SearchOptions> searches(3, {.max_length = 12});
  searches[1].beam_size = searches[1].n_best = 3;
  searches[2] = {.n_best = 2, .sample = true, .max_length = 12};
  std::vector<SourceLine> lines = lines_of(some_texts());
  lines[1].prefix = "the dog";
  for (const SearchOptions& search : searches) {
    const auto together = ensemble.translator({.search = search}).translate(lines);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const auto alone =
          ensemble.translator({.search = search}).translate(std::span(&lines[i], 1))[0];
      ASSERT_EQ(alone.size(), together[i].size());
      for (std::size_t j = 0; j < alone.size(); ++j) {
        EXPECT_TRUE(same(alone[j], together[i][j])) << "line " << i;
      }
    }
  }
}

TEST_F(EnsembleFolders, AlignmentIsThatOfTheFirstModel) {
  const Ensemble ensemble = both();
  const Translation found =
      ensemble.translator({.search = {.max_length = 9}, .alignment = true}).translate("a dog");
  EXPECT_EQ(found.attention.targets, found.pieces);
  EXPECT_EQ(found.attention.weights.size(),
            found.attention.sources.size() * found.attention.targets.size());
  EXPECT_EQ(std::ssize(found.attention.sources),
            std::ssize(small_.tokenizers.source().encode("a dog")) + 1);
}

TEST_F(EnsembleFolders, WorkersOnOtherThreadsShareTheWeights) {
  const Ensemble ensemble = both();
  const std::string expected = ensemble.translator().translate("the old fox").text;
  std::string found;
  std::thread thread([&, worker = ensemble.worker()] {
    found = worker.translator().translate("the old fox").text;
  });
  thread.join();
  EXPECT_EQ(found, expected);
}

TEST_F(EnsembleFolders, TheErrorNamesTheDifferenceOfTheTargetTokens) {
  const TemporaryFolder other;
  const auto refusal = [&] {
    return error_of([&] {
      Ensemble::open({first_.path(), other.path()}, {.threads = 1}).translator();
    });
  };
  SmallTranslation(letter_tokenizer()).save(other.path());
  EXPECT_TRUE(says(refusal(), first_.path().string() + "' and '" + other.path().string()));
  EXPECT_TRUE(says(refusal(), "There are 310 tokens in the first and 34 in the second"))
      << refusal();

  const std::string bytes = learned_bytes({.vocabulary = 310, .symbols = {"xyz"}});
  SmallTranslation(make_tokenizer(bytes, "with a symbol")).save(other.path());
  EXPECT_TRUE(says(refusal(), "Token ")) << refusal();
  EXPECT_TRUE(says(refusal(), "' in the first and '")) << refusal();

  small_.save(other.path());
  write_text(other / "generation_config.json", "{\"decoder_start_token_id\": 5}");
  EXPECT_TRUE(says(refusal(), "The start token is 1 in the first and 5 in the second"))
      << refusal();
}

TEST_F(EnsembleFolders, RefusesFoldersThatCannotTranslate) {
  EXPECT_TRUE(says(error_with_kind([] { Ensemble::open({}); }), "usage: an ensemble needs"));
  EXPECT_TRUE(says(error_of([&] {
                     Ensemble::open({first_.path(), first_.path() / "missing"}, {.threads = 1});
                   }),
                   "missing"));
}

}  // namespace
}  // namespace nunchi::testing
