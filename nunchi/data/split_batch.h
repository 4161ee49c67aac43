// Divides a batch that does not fit into memory.
#pragma once

#include <cstdint>
#include <vector>

#include "nunchi/data/batch_queue.h"

namespace nunchi {

// Rows of the sources and tokens of the targets; the memory of a training step grows with them.
std::int64_t batch_rows(const HostBatch& batch);

// Two parts of about equal rows, with the sentences in the same order. The batch must have at least
// two sentences.
std::vector<HostBatch> halves_of(const HostBatch& batch);

// The batch in parts of at most `max_rows` rows each, halved as often as needed; a longer sentence
// is alone in its part. The sentences keep their order.
std::vector<HostBatch> split_batch(const HostBatch& batch, std::int64_t max_rows);

}  // namespace nunchi
