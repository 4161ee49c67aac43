// Which source tokens a model looked at while it said each target token.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nunchi/models/sequence_model.h"

namespace nunchi {

struct AttentionMatrix {
  std::vector<std::string> sources;  // S pieces or words
  std::vector<std::string> targets;  // T pieces or words
  std::vector<float> weights;        // [T, S], each row sums to 1
};

// Cross-attention of each pair, mean of the heads of the last layer but one (of the only one where
// there is one): its layers nearest to the output look ahead, those far from it look around. Row t
// is what the model looked at while it said target token t, </s> last; sources end with </s>.
// Weights alone: naming the tokens is up to the caller. Throws Error when the model has no
// attention.
std::vector<std::vector<float>> cross_attention(const TranslationModel& model, const Source& source,
                                                std::span<const Tokens> targets,
                                                const DecoderTokens& tokens);

// The same attention between words: pieces are joined from one that begins with "▁" (as
// SentencePiece marks words) up to the next; "<0xEA>" is its byte; <s> and </s> stay by themselves.
// A word is looked at as much as its pieces together (a sum over columns) and looks as its pieces
// do on average (a mean over rows), so rows that sum to 1 still do. Throws Error when there are not
// T × S weights.
AttentionMatrix merged_into_words(const AttentionMatrix& pieces);

// For each target word the source word it looked at most, as (source, target) numbers; </s> takes
// no part. `words` comes from merged_into_words().
std::vector<std::pair<int, int>> hard_alignment(const AttentionMatrix& words);

}  // namespace nunchi
