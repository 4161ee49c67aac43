// Position encodings. Each one overrides some of three hooks: rows added to embeddings, a rotation
// of queries and keys, a bias on attention scores. The other hooks do nothing.
//
// Embeddings and self-attention call the hooks and never ask which encoding they have;
// cross-attention has no positions. Any number of threads may call them concurrently, each with its
// own context.
#pragma once

#include <memory>
#include <string>

#include "nunchi/nn/parameters.h"
#include "nunchi/ops/attention.h"

namespace nunchi::nn {

enum class PositionKind : std::uint8_t { none, sinusoidal, learned, rotary, relative, alibi };

class Position {
 public:
  virtual ~Position() = default;

  // The rows to add to embeddings, [at least `length`, C]; undefined: none.
  virtual Variable embed(ContextBase& context, std::int64_t length) const;
  // Rotates queries and keys, the first `heads` heads of each row of qkv [T, (H + 2 kv_heads) · D],
  // by their positions. The result may reuse the memory of qkv.
  virtual Variable rotate(const Variable& qkv, int heads, const Ragged& batch) const;
  // The bias that attention adds to its scores.
  virtual ScoreBias score_bias(ContextBase& context) const;

  // Prepares the table that embed() and rotate() read for sentences of up to `length` tokens, and
  // returns it; undefined: the encoding has none. As long as reserve() returns the same memory,
  // the hooks neither allocate nor move anything, so that a captured step can be replayed.
  virtual Tensor reserve(ContextBase& context, std::int64_t length) const;
};

// How distances between query and key are sorted into buckets, each with a bias per head.
//   t5:      half of the buckets hold one distance each, the others grow up to max_distance
//   clipped: each distance up to max_distance has a bucket; larger distances use the last
enum class RelativeKind : std::uint8_t { t5, clipped };

struct RelativeOptions {
  RelativeKind kind = RelativeKind::t5;
  int buckets = 32;  // t5: both directions together
  int max_distance = 128;
  bool bidirectional = false;  // keys after the query have separate buckets

  // Buckets of either kind: the table's rows.
  std::int64_t bucket_count() const;
  // Throws Error if `max_distance` is too small for `buckets`, or there are too few buckets.
  void check() const;
};

struct PositionOptions {
  PositionKind kind = PositionKind::sinusoidal;
  std::int64_t width = 0;    // C
  std::int64_t maximum = 0;  // learned: number of positions
  int heads = 1;
  std::int64_t head_width = 0;  // D
  // The initial standard deviation of a learned table; 0: 1 / √C.
  double deviation = 0;
  double rotary_base = 10000;  // the slowest pair of columns turns once in about 2π · base tokens
  RelativeOptions relative;
};

// The initial values of a learned table of positions.
Init table_init(const PositionOptions& options);

// The only function that knows all encodings. `name` prefixes the encoding's parameters.
std::unique_ptr<Position> make_position(Parameters& parameters, const std::string& name,
                                        const PositionOptions& options);

}  // namespace nunchi::nn
