// Encodings of positions, by the three hooks at which one can act.
//
// Each hook does nothing unless the encoding needs it. Embeddings and self-attention call them and
// never ask which encoding they have; cross-attention gets none. Any number of threads may call
// them at once, each with a context of its own.
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

  // Rows to add to embeddings, [at least `length`, C]; undefined: nothing is added.
  virtual Variable embed(ContextBase& context, std::int64_t length) const;
  // Rotates queries and keys, the first `heads` heads of each row of qkv [T, (H + 2 kv_heads) · D],
  // by their positions. Consumes qkv: the result may be in its memory.
  virtual Variable rotate(const Variable& qkv, int heads, const Ragged& batch) const;
  // The bias that attention adds to its scores.
  virtual ScoreBias score_bias(ContextBase& context) const;

  // Makes the table that embed() and rotate() read in sentences of up to `length` tokens, and
  // returns its memory; undefined: there is none. While it is the same memory, they neither
  // allocate nor move anything, so that a captured step can be replayed.
  virtual Tensor reserve(ContextBase& context, std::int64_t length) const;
};

// Which distances have a number of their own.
//   t5:      half of the buckets are single distances, the others grow up to max_distance
//   clipped: every distance up to max_distance; those beyond share the last
enum class RelativeKind : std::uint8_t { t5, clipped };

struct RelativeOptions {
  RelativeKind kind = RelativeKind::t5;
  int buckets = 32;  // t5: of both directions together
  int max_distance = 128;
  bool bidirectional = false;  // keys after the query have numbers of their own

  // Of each head, which the table has.
  std::int64_t numbers() const;
  // Throws Error when buckets and distance do not fit together.
  void check() const;
};

struct PositionOptions {
  PositionKind kind = PositionKind::sinusoidal;
  std::int64_t width = 0;    // C
  std::int64_t maximum = 0;  // learned: positions that exist
  int heads = 1;
  std::int64_t head_width = 0;  // D
  // The initial standard deviation of a learned table; 0: 1 / √C.
  double deviation = 0;
  double rotary_base = 10000;  // the slowest pairs make one turn in some 2π · base tokens
  RelativeOptions relative;
};

// How a learned table of positions starts.
Init table_init(const PositionOptions& options);

// The one place that knows all encodings. `name` prefixes their parameters.
std::unique_ptr<Position> make_position(Parameters& parameters, const std::string& name,
                                        const PositionOptions& options);

}  // namespace nunchi::nn
