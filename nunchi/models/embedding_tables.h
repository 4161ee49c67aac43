// The embedding tables of an encoder-decoder, some of which may be shared.
#pragma once

#include <array>
#include <string>

#include "nunchi/base/options.h"
#include "nunchi/data/batch.h"
#include "nunchi/nn/parameters.h"
#include "nunchi/ops/linear.h"

namespace nunchi {

// Which tables are shared: all three (the paper), the decoder's two, the embeddings of both sides,
// or none.
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
    // How embeddings and the vocabulary's input are scaled. Both decide the initial size of the
    // tables, so that embeddings and scores have a size of about one.
    bool embeddings_scaled = true;  // × √C
    bool output_scaled = false;     // / √C
  };
  // Calls `fail` when different vocabularies would share a table.
  static void check(const Options& options, const FailOption& fail);
  // See FamilyConfig::one_vocabulary.
  static std::string one_vocabulary(TiedEmbeddings tied);

  EmbeddingTables(nn::Parameters& parameters, const Options& options);

  // [V, C]; one or several parameters. Without source tokens, `source` is undefined, and ties with
  // it do not count.
  Variable source, target, output;
};

// Throws Error when the batch may have tokens outside of the vocabulary. `side` names the batch in
// the message.
void check_vocabulary(const TokenBatch& batch, std::int64_t vocabulary, const char* side);
// The tokens of a source. Throws Error when it consists of features, or may have tokens outside of
// the vocabulary.
const TokenBatch& token_source(const Source& source, std::int64_t vocabulary);
// The features of a source. Throws Error when it consists of tokens, or has another width.
const FeatureBatch& feature_source(const Source& source, std::int64_t width);

// Scores of tokens or labels, [rows of hidden, V]; in f32 where layers compute in bf16, so that
// close candidates can be told apart. Not recorded.
Tensor vocabulary_scores(const Tensor& hidden, const Linear& projection);
inline Tensor vocabulary_scores(const Tensor& hidden, const Variable& weight) {
  return vocabulary_scores(hidden, Linear{.weight = weight});
}

}  // namespace nunchi
