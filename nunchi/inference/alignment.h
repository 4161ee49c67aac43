// Cross-attention as an alignment: the source tokens that each target token attended to.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nunchi/models/sequence_model.h"
#include "nunchi/text/words.h"

namespace nunchi {

struct AttentionMatrix {
  std::vector<std::string> sources;  // S pieces or words
  std::vector<std::string> targets;  // T pieces or words
  std::vector<float> weights;        // [T, S], each row sums to 1
  LastPiece last_source = LastPiece::text, last_target = LastPiece::text;
};

// The cross-attention weights [T, S] of each pair: the mean over the heads of the second-to-last
// decoder layer (or of the only layer), whose attention aligns words best. Row t
// belongs to target token t, </s> last; each source ends with </s>. Throws Error when the model has
// no cross-attention.
std::vector<std::vector<float>> cross_attention(const TranslationModel& model, const Source& source,
                                                std::span<const Tokens> targets,
                                                const DecoderTokens& tokens);

// The same attention between words (text/words.h says how pieces form words). The columns of a
// source word are summed and the rows of a target word averaged, so rows still sum to 1. Throws
// Error unless there are T × S weights.
AttentionMatrix merged_into_words(const AttentionMatrix& pieces);

// For each target word the source word with the largest weight, as (source, target) indices. End
// tokens are left out. `words` comes from merged_into_words().
std::vector<std::pair<int, int>> hard_alignment(const AttentionMatrix& words);

}  // namespace nunchi
