#include "nunchi/inference/alignment_choice.h"

#include "nunchi/inference/scorer.h"
#include "tests/inference/small_translation.h"

namespace nunchi::testing {
namespace {

std::vector<LinkedPair> some_linked_pairs() {
  return {{"the fox sees the dog", "a dog sees a fox", {{4, 1}, {2, 2}, {1, 4}}},
          {"a dog", "the dog", {{1, 1}, {0, 1}}},
          {"the dog and the fox", "fox", {{4, 0}}},
          {"how", "a dog", {}}};
}

// The same count from the hard alignments that users see.
AlignmentCount counted_by_hand(SmallTranslation& s, const AlignmentHeads& heads) {
  const Scorer scorer(s.context, *s.model, s.tokenizers,
                      {.alignment = true, .alignment_heads = heads});
  AlignmentCount count;
  for (const LinkedPair& pair : some_linked_pairs()) {
    const std::vector<TextPair> texts{{pair.source, pair.target}};
    for (const auto& [source, target] :
         hard_alignment(merged_into_words(scorer.score(texts)[0].attention))) {
      bool has_link = false, right = false;
      for (const WordLink& link : pair.links) {
        has_link = has_link || link.target == target;
        right = right || link == WordLink{source, target};
      }
      count.words += has_link ? 1 : 0;
      count.right += right ? 1 : 0;
    }
  }
  return count;
}

TEST(LinkedAttention, CountsLikeHardAlignments) {
  SmallTranslation s;
  const std::vector<LinkedPair> pairs = some_linked_pairs();
  const LinkedAttention attention(s.context, *s.model, s.tokenizers, pairs);
  ASSERT_GT(attention.heads(), 1);
  for (const AlignmentHeads& heads : {AlignmentHeads{}, AlignmentHeads{{0, 1}},
                                      AlignmentHeads{{0, 0}, {attention.layers() - 1, 1}}}) {
    const AlignmentCount count = attention.count(heads), expected = counted_by_hand(s, heads);
    EXPECT_EQ(count.words, 5);
    EXPECT_EQ(count.words, expected.words);
    EXPECT_EQ(count.right, expected.right);
  }
}

TEST(LinkedAttention, NeitherASingleHeadNorTheDefaultIsBetterThanTheBestHeads) {
  SmallTranslation s;
  const std::vector<LinkedPair> pairs = some_linked_pairs();
  const LinkedAttention attention(s.context, *s.model, s.tokenizers, pairs);
  const AlignmentHeads best = attention.best_heads();
  ASSERT_FALSE(best.empty());
  const std::int64_t right = attention.count(best).right;
  EXPECT_LE(attention.count({}).right, right);
  for (int layer = 0; layer < attention.layers(); ++layer) {
    for (int head = 0; head < attention.heads(); ++head) {
      EXPECT_LE(attention.count({{layer, head}}).right, right);
    }
  }
}

TEST(LinkedAttention, WithoutLinksNothingIsCounted) {
  SmallTranslation s;
  const LinkedAttention attention(s.context, *s.model, s.tokenizers, {});
  EXPECT_EQ(attention.count({}).words, 0);
  EXPECT_EQ(attention.count({}).accuracy(), 0);
  EXPECT_TRUE(attention.best_heads().empty());
}

}  // namespace
}  // namespace nunchi::testing
