// Cross-attention as an alignment: the source tokens that each target token attended to.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nunchi/models/format/alignment_heads.h"
#include "nunchi/models/sequence_model.h"
#include "nunchi/text/words.h"

namespace nunchi {

struct AttentionMatrix {
  std::vector<std::string> sources;  // S pieces or words
  std::vector<std::string> targets;  // T pieces or words
  std::vector<float> weights;        // [T, S], each row sums to 1
  LastPiece last_source = LastPiece::text, last_target = LastPiece::text;
};

// The cross-attention of one pair: the weights of every head of every decoder layer.
struct CrossAttention {
  int layers = 0, heads = 0;
  std::size_t targets = 0, sources = 0;  // T and S, end tokens included
  std::vector<float> weights;            // [L, H, T, S]; row t is the query that predicts token t

  std::span<const float> of(const AlignmentHead& head) const;  // [T, S]
};

// Of each pair; each source ends with </s>. Throws Error when the model has no cross-attention.
std::vector<CrossAttention> cross_attention(const TranslationModel& model, const Source& source,
                                            std::span<const Tokens> targets,
                                            const DecoderTokens& tokens);

// All heads of the last two layers (or of the only layer): the mean of both is right more often
// than either of them.
AlignmentHeads default_alignment_heads(int layers, int heads);

// The weights [T, S] between the tokens of a pair: the mean of the given heads, or of the default
// ones if none are given. Row t belongs to target token t, </s> last. Throws Error when the
// model lacks one of the heads.
std::vector<float> alignment_weights(const CrossAttention& attention,
                                     const AlignmentHeads& heads = {});

// The same attention between words (text/words.h says how pieces form words). The columns of a
// source word are summed. The row of a target word is that of its first piece with a letter or a
// digit: it decides which word is written, while later pieces and punctuation often look elsewhere.
// So rows still sum to 1. Throws Error unless there are T × S weights.
AttentionMatrix merged_into_words(const AttentionMatrix& pieces);

// For each target word the source word with the largest weight, as (source, target) indices. End
// tokens are left out. `words` comes from merged_into_words().
std::vector<std::pair<int, int>> hard_alignment(const AttentionMatrix& words);

}  // namespace nunchi
