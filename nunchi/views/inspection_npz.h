// An inspection as an .npz file.
//
//   source, target, input               pieces; source_ids, target_ids, input_ids
//   step_position, step_id, step_probability, step_logit                       [steps]
//   best_id, best_probability, best_logit                                      [steps, best]
//   attention.STACK.LAYER.PART          weights of all heads                   [heads, queries,
//   keys] gradient_weight.STACK.LAYER.PART    the same, gradient × weight rollout.STACK.PART
//   [queries, keys] TAP.STACK, TAP.STACK.LAYER.PART     taps (trace/trace.h); scores [heads,
//   queries, keys] positions.rows, positions.similarity, positions.bias beam.step, beam.id,
//   beam.parent, beam.token, beam.state, beam.score, beam.log_probability
//
// Layers count from 0. A masked score is -inf; the state of a candidate is 0 kept, 1 dropped or
// 2 finished.
#pragma once

#include <string>

#include "nunchi/views/inspection_view.h"

namespace nunchi {

std::string to_npz(const Inspection& inspection, const InspectionSelection& selection = {});

}  // namespace nunchi
