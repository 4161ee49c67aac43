#include "nunchi/training/start_from.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/data/word_tokenizer.h"
#include "tests/training/piece_tokenizer.h"

namespace nunchi::testing {
namespace {

std::unique_ptr<Tokenizer> pieces(std::vector<std::string> pieces) {
  return std::make_unique<PieceTokenizer>(std::move(pieces));
}

TEST(TokenizerDifference, NamesTheFirstTokenThatDiffers) {
  const Tokenizers run(pieces({"a", "b", "c"}));
  EXPECT_EQ(tokenizer_difference(Tokenizers(pieces({"a", "b", "c"})), run), "");
  EXPECT_EQ(tokenizer_difference(Tokenizers(pieces({"a", "x", "y"})), run),
            "token 4 of its tokenizer is 'x', but the run's is 'b'");
  EXPECT_EQ(tokenizer_difference(Tokenizers(pieces({"a", "b"})), run),
            "its tokenizer has 5 tokens, but the run's has 6");
}

TEST(TokenizerDifference, IsFoundOnEitherSide) {
  const Tokenizers shared(pieces({"a", "b"})), same_twice(pieces({"a", "b"}), pieces({"a", "b"})),
      other_target(pieces({"a", "b"}), pieces({"a", "c"}));
  EXPECT_EQ(tokenizer_difference(shared, same_twice), "");
  EXPECT_EQ(tokenizer_difference(other_target, other_target), "");
  EXPECT_EQ(tokenizer_difference(shared, other_target),
            "token 4 of its target tokenizer is 'b', but the run's is 'c'");
}

// For example the same pieces with different scores.
TEST(TokenizerDifference, IsReportedWhenOnlyTheFingerprintsDiffer) {
  const Tokenizers model(std::make_unique<WordTokenizer>(1)),
      run(std::make_unique<WordTokenizer>(2));
  EXPECT_EQ(tokenizer_difference(model, run),
            "its tokenizer has the same tokens as the run's, but may tokenise text differently");
}

}  // namespace
}  // namespace nunchi::testing
