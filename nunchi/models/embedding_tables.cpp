#include "nunchi/models/embedding_tables.h"

#include <cmath>

#include "nunchi/base/error.h"
#include "nunchi/ops/products.h"

namespace nunchi {
namespace {

Variable make_table(nn::Parameters& parameters, const std::string& name, std::int64_t vocabulary,
                    std::int64_t width) {
  return parameters.add(name, {vocabulary, width},
                        nn::Init::normal(1 / std::sqrt(static_cast<double>(width))));
}

}  // namespace

void EmbeddingTables::check(const Options& options, const std::string& where) {
  if (options.tied != TiedEmbeddings::all ||
      options.source_vocabulary == options.target_vocabulary) {
    return;
  }
  throw Error(where + ": tied_embeddings 'all' needs one vocabulary, but there are " +
              std::to_string(options.source_vocabulary) + " source and " +
              std::to_string(options.target_vocabulary) +
              " target tokens. Use 'target' or 'none'.");
}

std::string EmbeddingTables::one_vocabulary(TiedEmbeddings tied) {
  if (tied != TiedEmbeddings::all) return {};
  return "'model.tied_embeddings' is 'all'; with two vocabularies it is 'target' or 'none'";
}

EmbeddingTables::EmbeddingTables(nn::Parameters& parameters, const Options& options)
    : source(make_table(parameters,
                        options.tied == TiedEmbeddings::all ? "shared.embedding.weight"
                                                            : "encoder.embedding.weight",
                        options.source_vocabulary, options.width)),
      target(options.tied == TiedEmbeddings::all
                 ? source
                 : make_table(parameters, "decoder.embedding.weight", options.target_vocabulary,
                              options.width)),
      output(options.tied == TiedEmbeddings::none
                 ? make_table(parameters, "decoder.output.weight", options.target_vocabulary,
                              options.width)
                 : target) {}

void check_vocabulary(const TokenBatch& batch, std::int64_t vocabulary, const char* side) {
  if (batch.vocabulary > vocabulary) {
    throw Error(std::string("the batch was made for ") + std::to_string(batch.vocabulary) + " " +
                side + " tokens, but the model knows " + std::to_string(vocabulary) + ".");
  }
}

Tensor vocabulary_scores(const Tensor& hidden, const Variable& table) {
  // Candidates are told apart by less than bf16 can hold.
  const Tensor scores = Tensor::empty(hidden.context(), summed(hidden.dtype()),
                                      {hidden.size(0), table.value().size(0)});
  multiply(hidden, pack_for_forward(table), scores, {.label = "vocabulary"});
  return scores;
}

}  // namespace nunchi
