#include "nunchi/models/embedding_tables.h"

#include <cmath>

#include "nunchi/base/error.h"
#include "nunchi/ops/products.h"

namespace nunchi {
namespace {

// The use of a table.
enum class Use : std::uint8_t { embedding, vocabulary, both };

Variable make_table(nn::Parameters& parameters, const std::string& name, Use use,
                    const EmbeddingTables::Options& options) {
  const bool unit_deviation =
      !options.embeddings_scaled &&
      (use == Use::embedding || (use == Use::both && options.output_scaled));
  const bool source = name.starts_with("encoder");
  return parameters.add(
      name, {source ? options.source_vocabulary : options.target_vocabulary, options.width},
      nn::Init::normal(unit_deviation ? 1 : 1 / std::sqrt(static_cast<double>(options.width))),
      nn::ParameterUse::product);
}

}  // namespace

void EmbeddingTables::check(const Options& options, const FailOption& fail) {
  if (shared_vocabulary_reason(options.tied).empty() || options.source_vocabulary == 0 ||
      options.source_vocabulary == options.target_vocabulary) {
    return;
  }
  fail({"tied_embeddings"}, "is '" + std::string(choice_name(kTiedEmbeddings, options.tied)) +
                                "' and needs one vocabulary, but there are " +
                                std::to_string(options.source_vocabulary) + " source and " +
                                std::to_string(options.target_vocabulary) +
                                " target tokens; use 'target' or 'none'");
}

std::string EmbeddingTables::shared_vocabulary_reason(TiedEmbeddings tied) {
  if (tied == TiedEmbeddings::target || tied == TiedEmbeddings::none) return {};
  return "'model.tied_embeddings' is '" + std::string(choice_name(kTiedEmbeddings, tied)) +
         "'; with two vocabularies it must be 'target' or 'none'";
}

EmbeddingTables::EmbeddingTables(nn::Parameters& parameters, const Options& options) {
  const auto table = [&](const char* name, Use use) {
    return make_table(parameters, name, use, options);
  };
  if (options.source_vocabulary == 0) {
    const bool tied = options.tied == TiedEmbeddings::all || options.tied == TiedEmbeddings::target;
    target = table("decoder.embedding.weight", tied ? Use::both : Use::embedding);
    output = tied ? target : table("decoder.output.weight", Use::vocabulary);
    return;
  }
  switch (options.tied) {
    case TiedEmbeddings::all:
      source = target = output = table("shared.embedding.weight", Use::both);
      return;
    case TiedEmbeddings::inputs:
      source = target = table("shared.embedding.weight", Use::embedding);
      output = table("decoder.output.weight", Use::vocabulary);
      return;
    case TiedEmbeddings::target:
      source = table("encoder.embedding.weight", Use::embedding);
      target = output = table("decoder.embedding.weight", Use::both);
      return;
    case TiedEmbeddings::none:
      source = table("encoder.embedding.weight", Use::embedding);
      target = table("decoder.embedding.weight", Use::embedding);
      output = table("decoder.output.weight", Use::vocabulary);
  }
}

void check_vocabulary(const TokenBatch& batch, std::int64_t vocabulary, const char* side) {
  if (batch.vocabulary > vocabulary) {
    throw Error(std::string("the batch was made for ") + std::to_string(batch.vocabulary) + " " +
                side + " tokens, but the model has " + std::to_string(vocabulary) + ".");
  }
}

const TokenBatch& token_source(const Source& source, std::int64_t vocabulary) {
  const TokenBatch* tokens = source.tokens();
  if (tokens == nullptr)
    throw Error("the model reads tokens, but the source consists of features.");
  check_vocabulary(*tokens, vocabulary, "source");
  return *tokens;
}

const FeatureBatch& feature_source(const Source& source, std::int64_t width) {
  const FeatureBatch* features = source.features();
  if (features == nullptr)
    throw Error("the model reads features, but the source consists of tokens.");
  if (features->width() != width) {
    throw Error("the source has features of width " + std::to_string(features->width()) +
                ", but the model reads " + std::to_string(width) + ".");
  }
  return *features;
}

Tensor vocabulary_scores(const Tensor& hidden, const Linear& projection) {
  const Variable &weight = projection.weight, &bias = projection.bias;
  const Tensor scores = Tensor::empty(hidden.context(), accumulator_type(hidden.dtype()),
                                      {hidden.size(0), weight.value().size(0)});
  multiply(hidden, forward_weight(hidden.context(), weight), scores,
           {.bias = bias.defined() ? bias.value() : Tensor(), .label = "vocabulary"});
  return scores;
}

}  // namespace nunchi
