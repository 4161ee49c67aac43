#include "nunchi/models/encoder.h"

#include "nunchi/base/error.h"
#include "nunchi/models/embedding_tables.h"

namespace nunchi {

Memory Encoder::operator()(const Source& source) const {
  const TokenBatch& tokens = token_source(source, input_.vocabulary);
  const Variable embedded = input_.embedding(tokens.ids, tokens.rows, input_.position);
  return {layers_(embedded, {.rows = tokens.rows}), tokens.rows};
}

}  // namespace nunchi
