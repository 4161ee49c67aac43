// What a search for one sentence considered: the candidates of every step and what became of them.
// Recorded from the search itself while it runs.
#pragma once

#include <cstdint>
#include <vector>

namespace nunchi {

// A token that could continue a hypothesis.
struct BeamCandidate {
  enum class Outcome : std::uint8_t {
    kept,           // continues in the next step
    ended,          // </s>: the hypothesis has finished
    cut,            // the hypothesis has finished at its maximum length
    outranked,      // better candidates took all places
    end_outranked,  // </s>, but not among the first `beam_size` candidates
    search_done,    // good enough, but the search ended: enough hypotheses have finished
  };
  std::int64_t parent = 0;  // row of the hypothesis that it continues, in the step before
  std::int32_t token = 0;
  double log_probability = 0;  // of the token
  double score = 0;            // log-probability of the hypothesis with this token
  Outcome outcome = Outcome::kept;
  std::int64_t row = -1;  // of the hypothesis in the next step; -1: it does not continue
};

struct BeamRecord {
  int beam_size = 0;
  // Of each step the candidates, best first; those of the prefix are not among them.
  std::vector<std::vector<BeamCandidate>> steps;
};

}  // namespace nunchi
