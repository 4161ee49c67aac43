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

enum class PositionKind : std::uint8_t { none, sinusoidal, learned };

class Position {
 public:
  virtual ~Position() = default;

  // Rows to add to embeddings, [at least `length`, C]; undefined: nothing is added.
  virtual Variable embed(std::int64_t length) const;
  // Turns queries and keys [T, H · D] by their positions.
  virtual void rotate(Variable& q, Variable& k, const Ragged& batch) const;
  // What attention adds to its scores.
  virtual ScoreBias score_bias() const;
};

struct PositionOptions {
  PositionKind kind = PositionKind::sinusoidal;
  std::int64_t width = 0;    // C
  std::int64_t maximum = 0;  // learned: positions that exist
};

// The one place that knows all encodings. `name` prefixes their parameters.
std::unique_ptr<Position> make_position(Parameters& parameters, const std::string& name,
                                        const PositionOptions& options);

}  // namespace nunchi::nn
