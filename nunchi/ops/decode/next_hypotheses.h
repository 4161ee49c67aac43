// From hidden rows to the hypotheses that continue, without storing all scores where the device can
// do so. Inference only.
#pragma once

#include "nunchi/autograd/variable.h"
#include "nunchi/kernels/search.h"

namespace nunchi {

// hidden [R or more, C], table [V, C]: their product is the scores of the next tokens. `allowed`
// says which candidates of the first R rows to find and where to write them, in the type that
// hidden's is summed in; it has no logits. `step` reads those candidates.
template <class S>
void next_hypotheses(const Tensor& hidden, const Variable& table,
                     const kernels::TopAllowed<S>& allowed, const kernels::BeamStep<S>& step);

}  // namespace nunchi
