// From rows of hidden numbers to the hypotheses that go on, without all scores in memory where the
// device can do without. Not recorded: for steps that generate.
#pragma once

#include "nunchi/autograd/variable.h"
#include "nunchi/kernels/search.h"

namespace nunchi {

// hidden [R or more, C], table [V, C], whose product the scores of the next tokens are. `allowed`
// describes the first R rows and where their candidates go, in the type that hidden's is summed in;
// it has no logits. `step` reads those candidates.
template <class S>
void next_hypotheses(const Tensor& hidden, const Variable& table,
                     const kernels::TopAllowed<S>& allowed, const kernels::BeamStep<S>& step);

}  // namespace nunchi
