// The parts of a step of beam search, each by a warp: choose the candidates that a unit continues
// with, write the hypotheses that finish, write the unit's next rows.
#pragma once

#include "nunchi/kernels/cuda/common/device.h"
#include "nunchi/kernels/search.h"

namespace nunchi::kernels {

// One hypothesis with one more token.
struct Candidate {
  double score;
  std::int32_t row;
  std::int32_t rank;  // among the row's candidates
};

// A unit's candidates, and the best candidate of each row that is not taken yet. Candidates are
// copied to shared memory if they fit, because choosing is a chain of dependent loads.
struct RowHeads {
  // Each lane reads and writes only its own rows.
  double* score;                 // [width] score of the best candidate not taken; -inf: none
  std::int32_t* rank;            // [width] rank of that candidate
  const double* previous_score;  // [width] scores of the rows' hypotheses
  const float* log_probs;        // [width, candidates]
  const std::int32_t* ids;       // [width, candidates]
};

// Properties that the rows of a unit share.
struct Unit {
  std::int32_t index;
  std::int64_t first_row, length;

  __device__ Unit(const BeamStep<float>& p, std::int64_t u)
      : index(p.from.unit[u * p.width]),
        first_row(u * p.width),
        length(p.from.length[u * p.width]) {}
};

// Copies the row's tokens and adds the candidate's token. Called by a whole warp.
__device__ inline void copy_history(const BeamStep<float>& p, const Unit& unit, const Candidate& c,
                                    std::int32_t* tokens, float* scores) {
  const std::int32_t* from_tokens = p.from.tokens + c.row * p.stride;
  const float* from_scores = p.from.token_scores + c.row * p.stride;
  for (std::int64_t i = lane_of_thread(); i < unit.length; i += kWarp) {
    tokens[i] = from_tokens[i];
    scores[i] = from_scores[i];
  }
  if (lane_of_thread() == 0) {
    const std::int64_t at = c.row * p.candidates + c.rank;
    tokens[unit.length] = p.ids[at];
    scores[unit.length] = p.log_probs[at];
  }
}

// A unit's candidates, best first: merges its rows, which are sorted. Used by a whole warp.
class Candidates {
 public:
  __device__ Candidates(const BeamStep<float>& p, const Unit& unit, const RowHeads& heads)
      : p_(p), first_row_(unit.first_row), heads_(heads) {
    for (std::int64_t j = lane_of_thread(); j < p.width; j += kWarp) move_to(j, 0);
    find_own();
  }

  // Returns false if no candidate with a score above -inf is left.
  __device__ bool next(Candidate& best) {
    double score = own_score_;
    std::int32_t row = own_row_;
#pragma unroll
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
      const double other_score = __shfl_xor_sync(kAllLanes, score, offset);
      const std::int32_t other_row = __shfl_xor_sync(kAllLanes, row, offset);
      if (other_score > score || (other_score == score && other_row < row)) {
        score = other_score;
        row = other_row;
      }
    }
    if (!(score > -INFINITY)) return false;
    const int owner = row % kWarp;
    const std::int32_t rank = __shfl_sync(kAllLanes, own_rank_, owner);
    best = {score, static_cast<std::int32_t>(first_row_ + row), rank};
    if (lane_of_thread() == owner) {
      move_to(row, rank + 1);
      find_own();
    }
    return true;
  }

 private:
  __device__ void move_to(std::int64_t j, std::int32_t rank) {
    double score = -INFINITY;
    if (rank < p_.candidates) {
      score = heads_.previous_score[j] +
              static_cast<double>(heads_.log_probs[j * p_.candidates + rank]);
    }
    heads_.score[j] = score > -INFINITY ? score : -INFINITY;
    heads_.rank[j] = rank;
  }
  // Finds the best of this lane's rows; among equals, the first.
  __device__ void find_own() {
    own_score_ = -INFINITY;
    own_row_ = 0;
    for (std::int64_t j = lane_of_thread(); j < p_.width; j += kWarp) {
      if (heads_.score[j] > own_score_) {
        own_score_ = heads_.score[j];
        own_row_ = static_cast<std::int32_t>(j);
        own_rank_ = heads_.rank[j];
      }
    }
  }

  const BeamStep<float>& p_;
  std::int64_t first_row_;
  RowHeads heads_;
  double own_score_ = -INFINITY;
  std::int32_t own_row_ = 0, own_rank_ = 0;
};

// Chooses the candidates that a unit continues with and writes the hypotheses that finish. Called
// by a whole warp. Returns whether the unit continues; then `next` holds one candidate per row.
__device__ inline bool plan_unit(const BeamStep<float>& p, std::int64_t u, const RowHeads& heads,
                                 Candidate* next) {
  const int lane = lane_of_thread();
  const Unit unit(p, u);
  Candidates candidates(p, unit, heads);
  const FinishedRows& to = p.finished;
  const std::int32_t finished_before = to.count[unit.index];
  std::int64_t finished = finished_before;
  const bool last_step = unit.length + 1 >= p.options[unit.index].max_length;

  const auto finish = [&](const Candidate& c, bool ended) {
    const std::int64_t at = unit.index * p.beam + finished++;
    copy_history(p, unit, c, to.tokens + at * p.stride, to.token_scores + at * p.stride);
    if (lane == 0) {
      to.score[at] = c.score;
      to.length[at] = static_cast<std::int32_t>(ended ? unit.length : unit.length + 1);
      to.ended_by_eos[at] = ended ? 1 : 0;
    }
  };
  std::int64_t continuing = 0;
  Candidate c{}, last{};
  for (std::int64_t rank = 0; continuing < p.beam && candidates.next(c); ++rank) {
    if (heads.ids[(c.row - unit.first_row) * p.candidates + c.rank] == p.end_token) {
      if (rank < p.beam && finished < p.beam) finish(c, true);
    } else if (last_step) {
      if (finished == p.beam) break;
      finish(c, false);
      ++continuing;
    } else {
      last = c;
      if (lane == 0) next[continuing] = c;
      ++continuing;
    }
  }
  const bool continues = finished < p.beam && !last_step && continuing > 0;
  // Rows of the beam without a candidate repeat the last one, with a score that keeps them from
  // finishing.
  last.score = -INFINITY;
  for (std::int64_t k = continuing + lane; continues && k < p.beam; k += kWarp) next[k] = last;
  if (lane == 0 && finished != finished_before) {
    to.count[unit.index] = static_cast<std::int32_t>(finished);
  }
  if (lane == 0 && !continues) to.unit_done[unit.index] = 1;
  return continues;
}

// Writes one of a unit's next rows. Called by a whole warp.
__device__ inline void write_row(const BeamStep<float>& p, std::int64_t u, const Candidate& c,
                                 std::int64_t row) {
  const Unit unit(p, u);
  copy_history(p, unit, c, p.to.tokens + row * p.stride, p.to.token_scores + row * p.stride);
  if (lane_of_thread() == 0) {
    p.to.score[row] = c.score;
    p.to.unit[row] = unit.index;
    p.to.length[row] = static_cast<std::int32_t>(unit.length + 1);
    p.parents[row] = static_cast<std::int32_t>(p.first_parent + c.row);
    p.next[row] = p.ids[c.row * p.candidates + c.rank];
  }
}

// Writes a message of a HostSignal atomically, bypassing the caches. Not with st.release, which
// would wait for earlier writes: the message does not announce any.
__device__ inline void write_signal(std::int64_t* slot, std::int64_t message) {
  asm volatile("st.relaxed.sys.b64 [%0], %1;" ::"l"(slot), "l"(message) : "memory");
}

// Writes the counts that the next step reads. Called by one thread, after all reads of the old
// counts unless these are stored elsewhere. `active` does not include the units before this step's.
__device__ inline void end_step(const BeamStep<float>& p, std::int64_t active) {
  active += p.units_before();
  const std::int64_t steps = p.steps_after();
  *p.active = static_cast<std::int32_t>(active);
  p.report(active, write_signal);
  if (p.steps != nullptr) *p.steps = static_cast<std::int32_t>(steps);
}

}  // namespace nunchi::kernels
