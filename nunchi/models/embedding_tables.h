// The embedding tables of an encoder-decoder, some of which may be shared.
#pragma once

#include <array>
#include <string>

#include "nunchi/base/options.h"
#include "nunchi/data/batch.h"
#include "nunchi/nn/parameters.h"
#include "nunchi/ops/linear.h"

namespace nunchi {

// Which tables are shared: all three (as in the paper); `target`: the decoder's embedding and
// output; `inputs`: the embeddings of both sides; or none.
enum class TiedEmbeddings : std::uint8_t { all, target, inputs, none };

inline constexpr std::array kTiedEmbeddings = {
    Choice{"all", TiedEmbeddings::all}, Choice{"target", TiedEmbeddings::target},
    Choice{"inputs", TiedEmbeddings::inputs}, Choice{"none", TiedEmbeddings::none}};

struct EmbeddingTables {
  struct Options {
    std::int64_t source_vocabulary = 0;  // 0: the source has no tokens, and so no table
    std::int64_t target_vocabulary = 0;
    std::int64_t width = 0;
    TiedEmbeddings tied = TiedEmbeddings::all;
    // Whether embeddings and the input of the vocabulary projection are scaled. The initial
    // deviation of the tables depends on both, so that embeddings and scores start with a magnitude
    // of about 1.
    bool embeddings_scaled = true;  // × √C
    bool output_scaled = false;     // / √C
  };
  // Calls `fail` if different vocabularies would share a table.
  static void check(const Options& options, const FailOption& fail);
  // See FamilyConfig::shared_vocabulary_reason.
  static std::string shared_vocabulary_reason(TiedEmbeddings tied);

  EmbeddingTables(nn::Parameters& parameters, const Options& options);

  // [V, C] each; tied tables are one parameter. Without source tokens, `source` is undefined and
  // the other two are tied only by `all` and `target`.
  Variable source, target, output;
};

// Throws Error if the batch may have tokens outside the vocabulary. `side` names the batch in the
// message.
void check_vocabulary(const TokenBatch& batch, std::int64_t vocabulary, const char* side);
// The tokens of a source. Throws Error if it consists of features or may have tokens outside the
// vocabulary.
const TokenBatch& token_source(const Source& source, std::int64_t vocabulary);
// The features of a source. Throws Error if it consists of tokens or has another width.
const FeatureBatch& feature_source(const Source& source, std::int64_t width);

// Scores of tokens or labels, [rows of hidden, V]; in f32 if layers compute in bf16, so that
// close candidates stay distinguishable. Not recorded.
Tensor vocabulary_scores(const Tensor& hidden, const Linear& projection);
inline Tensor vocabulary_scores(const Tensor& hidden, const Variable& weight) {
  return vocabulary_scores(hidden, Linear{.weight = weight});
}

}  // namespace nunchi
