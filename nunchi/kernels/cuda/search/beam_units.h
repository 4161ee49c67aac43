// The parts of a step of beam search, each by a warp: which candidates a unit goes on with, what of
// it has ended, its rows where they will stand.
#pragma once

#include "nunchi/kernels/cuda/common/device.h"
#include "nunchi/kernels/search.h"

namespace nunchi::kernels {

// One hypothesis with one more token.
struct Candidate {
  double score;
  std::int32_t row;
  std::int32_t place;  // among the row's candidates
};

// What a warp knows of a unit's candidates. What they come from is kept in shared memory where
// there is room, since choosing among them is one load after another.
struct Heads {
  // Each lane looks at its own rows alone.
  double* score;            // [width] of the row's first candidate that was not taken; -inf: none
  std::int32_t* place;      // [width]
  const double* before;     // [width] scores of the rows' hypotheses
  const float* log_probs;   // [width, candidates]
  const std::int32_t* ids;  // [width, candidates]
};

// Everything about a unit that is the same for its rows.
struct Unit {
  std::int32_t number;
  std::int64_t first_row, length;

  __device__ Unit(const BeamStep<float>& p, std::int64_t u)
      : number(p.from.unit[u * p.width]),
        first_row(u * p.width),
        length(p.prefix_length[number] + p.now.tokens(p.generated)) {}
};

// The row's tokens so far, and the candidate's, by a warp.
__device__ inline void copy_history(const BeamStep<float>& p, const Unit& unit, const Candidate& c,
                                    std::int32_t* tokens, float* scores) {
  const std::int32_t* from_tokens = p.from.tokens + c.row * p.stride;
  const float* from_scores = p.from.token_scores + c.row * p.stride;
  for (std::int64_t i = lane_of_thread(); i < unit.length; i += kWarp) {
    tokens[i] = from_tokens[i];
    scores[i] = from_scores[i];
  }
  if (lane_of_thread() == 0) {
    const std::int64_t at = c.row * p.candidates + c.place;
    tokens[unit.length] = p.ids[at];
    scores[unit.length] = p.log_probs[at];
  }
}

// A unit's candidates, best first: a merge of its rows, which are sorted. By a warp.
class Candidates {
 public:
  __device__ Candidates(const BeamStep<float>& p, const Unit& unit, const Heads& heads)
      : p_(p), first_row_(unit.first_row), heads_(heads) {
    for (std::int64_t j = lane_of_thread(); j < p.width; j += kWarp) move_to(j, 0);
    find_own();
  }

  // False when there is none left that can come at all.
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
    const std::int32_t place = __shfl_sync(kAllLanes, own_place_, owner);
    best = {score, static_cast<std::int32_t>(first_row_ + row), place};
    if (lane_of_thread() == owner) {
      move_to(row, place + 1);
      find_own();
    }
    return true;
  }

 private:
  __device__ void move_to(std::int64_t j, std::int32_t place) {
    double score = -INFINITY;
    if (place < p_.candidates) {
      score = heads_.before[j] + static_cast<double>(heads_.log_probs[j * p_.candidates + place]);
    }
    heads_.score[j] = score > -INFINITY ? score : -INFINITY;
    heads_.place[j] = place;
  }
  // The best of this lane's rows, of equals the first.
  __device__ void find_own() {
    own_score_ = -INFINITY;
    own_row_ = 0;
    for (std::int64_t j = lane_of_thread(); j < p_.width; j += kWarp) {
      if (heads_.score[j] > own_score_) {
        own_score_ = heads_.score[j];
        own_row_ = static_cast<std::int32_t>(j);
        own_place_ = heads_.place[j];
      }
    }
  }

  const BeamStep<float>& p_;
  std::int64_t first_row_;
  Heads heads_;
  double own_score_ = -INFINITY;
  std::int32_t own_row_ = 0, own_place_ = 0;
};

// Decides on one unit and writes what ended, by a warp. Returns whether it goes on; then `next` is
// what with, one for each place of the beam.
__device__ inline bool plan_unit(const BeamStep<float>& p, std::int64_t u, const Heads& heads,
                                 Candidate* next) {
  const int lane = lane_of_thread();
  const Unit unit(p, u);
  Candidates candidates(p, unit, heads);
  const FinishedRows& to = p.finished;
  const std::int32_t finished_before = to.count[unit.number];
  std::int64_t finished = finished_before;
  const bool last_step = unit.length + 1 >= p.max_length[unit.number];

  const auto finish = [&](const Candidate& c, bool ended) {
    const std::int64_t at = unit.number * p.beam + finished++;
    copy_history(p, unit, c, to.tokens + at * p.stride, to.token_scores + at * p.stride);
    if (lane == 0) {
      to.score[at] = c.score;
      to.length[at] = static_cast<std::int32_t>(ended ? unit.length : unit.length + 1);
      to.ended[at] = ended ? 1 : 0;
    }
  };
  std::int64_t going_on = 0;
  Candidate c{}, last{};
  for (std::int64_t rank = 0; going_on < p.beam && candidates.next(c); ++rank) {
    if (heads.ids[(c.row - unit.first_row) * p.candidates + c.place] == p.end_token) {
      if (rank < p.beam && finished < p.beam) finish(c, true);
    } else if (last_step) {
      if (finished == p.beam) break;
      finish(c, false);
      ++going_on;
    } else {
      last = c;
      if (lane == 0) next[going_on] = c;
      ++going_on;
    }
  }
  const bool goes_on = finished < p.beam && !last_step && going_on > 0;
  // Places in the beam for which there was no candidate: nothing comes of them.
  last.score = -INFINITY;
  for (std::int64_t k = going_on + lane; goes_on && k < p.beam; k += kWarp) next[k] = last;
  if (lane == 0 && finished != finished_before) {
    to.count[unit.number] = static_cast<std::int32_t>(finished);
  }
  return goes_on;
}

// One of a unit's rows where it will stand, by a warp.
__device__ inline void write_row(const BeamStep<float>& p, std::int64_t u, const Candidate& c,
                                 std::int64_t row) {
  const Unit unit(p, u);
  copy_history(p, unit, c, p.to.tokens + row * p.stride, p.to.token_scores + row * p.stride);
  if (lane_of_thread() == 0) {
    p.to.score[row] = c.score;
    p.to.unit[row] = unit.number;
    p.parents[row] = c.row;
    p.next[row] = p.ids[c.row * p.candidates + c.place];
    p.row_source[row] = p.unit_source[unit.number];
  }
}

// Writes a message of a HostSignal in one piece and past the caches. Not st.release, which would
// wait: a message says nothing about other memory.
__device__ inline void write_signal(std::int64_t* slot, std::int64_t message) {
  asm volatile("st.relaxed.sys.b64 [%0], %1;" ::"l"(slot), "l"(message) : "memory");
}

// What the next step starts from. One thread does this, where nobody reads the old numbers any more
// or they stand elsewhere.
__device__ inline void end_step(const BeamStep<float>& p, std::int64_t active) {
  *p.active = static_cast<std::int32_t>(active);
  p.report(active, write_signal);
  if (p.generated_next != nullptr) {
    *p.generated_next = static_cast<std::int32_t>(p.now.tokens(p.generated) + 1);
  }
}

}  // namespace nunchi::kernels
