#include "nunchi/models/encoder.h"

#include "nunchi/base/error.h"
#include "nunchi/models/embedding_tables.h"

namespace nunchi {

Variable Encoder::embedded(const Source& source) const {
  if (input_.features == nullptr) {
    const TokenBatch& tokens = token_source(source, input_.inputs.source_vocabulary);
    return (*input_.tokens)(tokens.ids, tokens.rows, input_.position);
  }
  const FeatureBatch& features = feature_source(source, input_.inputs.source_features);
  return (*input_.features)(features.values, features.rows, input_.position);
}

Memory Encoder::operator()(const Source& source) const {
  return {layers_(embedded(source), {.rows = source.rows()}), source.rows()};
}

}  // namespace nunchi
