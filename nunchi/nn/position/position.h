// Where a token stands: the three places at which an encoding of positions can act.
//
// Each hook does nothing unless the encoding needs it. Embeddings and self-attention call them and
// never ask which encoding they have; cross-attention gets none.
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
  virtual Variable embed(std::int64_t length) const;
  // Turns queries and keys, the first `heads` heads of each row of qkv [T, (H + 2 kv_heads) · D],
  // by their positions. The result may be in qkv's memory: qkv is used up.
  virtual Variable rotate(const Variable& qkv, int heads, const Ragged& batch) const;
  // What attention adds to its scores.
  virtual ScoreBias score_bias() const;

  // Makes what embed() and rotate() look up in sentences of up to `length` tokens, and returns that
  // memory; undefined: there is none. While it is the same memory, they neither allocate nor move
  // anything, so that a step can be replayed.
  virtual Tensor reserve(std::int64_t length) const;
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
  double rotary_base = 10000;   // the slowest pairs turn once in some 2π · base tokens
  RelativeOptions relative;
};

// The one place that knows all encodings. `name` prefixes their parameters.
std::unique_ptr<Position> make_position(Parameters& parameters, const std::string& name,
                                        const PositionOptions& options);

}  // namespace nunchi::nn
