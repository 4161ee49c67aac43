#include "nunchi/text/words.h"

#include <gtest/gtest.h>

namespace nunchi::testing {
namespace {

using Texts = std::vector<std::string>;
using Numbers = std::vector<int>;

TEST(WordsOf, JoinsPiecesUpToTheNextSpace) {
  const Words words = words_of(Texts{"▁a", "▁do", "g", "s", "▁bark", "</s>"}, LastPiece::end_token);
  EXPECT_EQ(words.texts, (Texts{"a", "dogs", "bark", "</s>"}));
  EXPECT_EQ(words.sizes, (Numbers{1, 3, 1, 1}));
  EXPECT_EQ(words.word_of_piece, (Numbers{0, 1, 1, 1, 2, 3}));
}

TEST(WordsOf, TheFirstPieceNeedsNoSpace) {
  EXPECT_EQ(words_of(Texts{"do", "g", "▁x"}).texts, (Texts{"dog", "x"}));
}

TEST(WordsOf, AnEndTokenOfAnyNameIsASeparateWord) {
  EXPECT_EQ(words_of(Texts{"▁a", "b", "<end>"}, LastPiece::end_token).texts,
            (Texts{"ab", "<end>"}));
  EXPECT_EQ(words_of(Texts{"▁a", "</s>", "</s>"}, LastPiece::end_token).texts,
            (Texts{"a</s>", "</s>"}));
  EXPECT_EQ(words_of(Texts{"▁a", "</s>"}).texts, (Texts{"a</s>"})) << "text, not the end token";
}

TEST(WordsOf, BytePiecesAreJoinedToCharacters) {
  EXPECT_EQ(words_of(Texts{"▁", "<0xEB>", "<0x88>", "<0x88>", "치"}).texts, (Texts{"눈치"}));
  // Invalid bytes are replaced, as in a translation.
  EXPECT_EQ(words_of(Texts{"▁a", "<0xEB>", "<0x88>", "▁b"}).texts, (Texts{"a\uFFFD", "b"}));
  // A piece that only looks like a byte is text.
  EXPECT_EQ(words_of(Texts{"<0xeb>", "<0xG0>", "<0xEB", "<unk>"}).texts,
            (Texts{"<0xeb><0xG0><0xEB<unk>"}));
}

TEST(WordsOf, AWordWithoutLettersIsShownAsASpaceMark) {
  EXPECT_EQ(words_of(Texts{"▁", "▁a", "▁"}).texts, (Texts{"▁", "a", "▁"}));
}

TEST(WordsOf, NoPiecesGiveNoWords) { EXPECT_TRUE(words_of({}).texts.empty()); }

}  // namespace
}  // namespace nunchi::testing
