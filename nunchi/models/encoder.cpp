#include "nunchi/models/encoder.h"

#include "nunchi/base/error.h"
#include "nunchi/models/embedding_tables.h"

namespace nunchi {

Variable Encoder::embedded(const Source& source) const {
  if (modules_.feature_embedding == nullptr) {
    const TokenBatch& tokens = token_source(source, modules_.input_sizes.source_vocabulary);
    return (*modules_.token_embedding)(tokens.ids, tokens.rows, modules_.position, "encoder");
  }
  const FeatureBatch& features = feature_source(source, modules_.input_sizes.source_feature_width);
  return (*modules_.feature_embedding)(features.values, features.rows, modules_.position);
}

Memory Encoder::operator()(const Source& source) const {
  return {layers_(embedded(source), {.rows = source.rows()}), source.rows()};
}

}  // namespace nunchi
