// Computes the hypotheses of the next step from hidden rows, without storing all logits if the
// device can fuse the projection with the search. Inference only.
#pragma once

#include "nunchi/autograd/variable.h"
#include "nunchi/kernels/search.h"

namespace nunchi {

// hidden [R or more, C], table [V, C]: their product is the logits of the next tokens. `allowed`
// describes the candidates to find for the first R rows and where to write them; its logits must be
// null. `step` reads these candidates. S must be hidden's accumulator type.
template <class S>
void next_hypotheses(const Tensor& hidden, const Variable& table,
                     const kernels::TopAllowedTokens<S>& allowed, const kernels::BeamStep<S>& step);

}  // namespace nunchi
