// Computes the hypotheses of the next step where some units must contain phrases
// (kernels/required_phrases.h). Inference only.
#pragma once

#include "nunchi/device/context.h"
#include "nunchi/kernels/required_phrases.h"

namespace nunchi {

// `allowed` and `step` describe the step as it is without phrases. `phrases` has an entry for each
// unit of the search.
template <class T>
void phrase_hypotheses(ContextBase& context, const kernels::UnitPhrases* phrases,
                       const kernels::TopAllowedTokens<T>& allowed,
                       const kernels::BeamStep<T>& step);

}  // namespace nunchi
