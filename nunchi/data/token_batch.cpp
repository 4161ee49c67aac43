#include "nunchi/data/token_batch.h"

#include <numeric>
#include <string>

#include "nunchi/base/error.h"
#include "nunchi/ops/tensors.h"

namespace nunchi {

Tensor make_token_ids(ContextBase& context, std::span<const Tokens> sentences, const Ragged& rows,
                      std::int64_t vocabulary) {
  Tokens ids;
  ids.reserve(static_cast<std::size_t>(rows.capacity));
  for (const Tokens& sentence : sentences) {
    for (const std::int32_t token : sentence) {
      if (token < 0 || token >= vocabulary) {
        throw Error("token " + std::to_string(token) + " is not in a vocabulary of " +
                    std::to_string(vocabulary) + ".");
      }
      ids.push_back(token);
    }
  }
  ids.resize(static_cast<std::size_t>(rows.capacity), 0);
  return from_host(context, ids, {rows.capacity});
}

TokenBatch make_token_batch(ContextBase& context, std::span<const Tokens> sentences,
                            std::int64_t vocabulary, std::int32_t first_sentence) {
  std::vector<std::int32_t> lengths, indices(sentences.size());
  for (const Tokens& sentence : sentences) {
    lengths.push_back(static_cast<std::int32_t>(sentence.size()));
  }
  std::iota(indices.begin(), indices.end(), first_sentence);
  TokenBatch batch;
  batch.rows = make_ragged(context, lengths, indices);
  batch.ids = make_token_ids(context, sentences, batch.rows, vocabulary);
  batch.vocabulary = vocabulary;
  return batch;
}

}  // namespace nunchi
