// The likeliest tokens of rows of hidden numbers, without all scores in memory where the device can
// do without. Not recorded: for steps that generate.
#pragma once

#include "nunchi/autograd/variable.h"
#include "nunchi/kernels/search.h"

namespace nunchi {

// hidden [R or more, C], table [V, C]; `allowed` describes the first R rows and where their
// candidates go, in the type that hidden's is summed in; it has no logits.
void top_of_product(const Tensor& hidden, const Variable& table,
                    const kernels::TopAllowed<float>& allowed);
void top_of_product(const Tensor& hidden, const Variable& table,
                    const kernels::TopAllowed<double>& allowed);

}  // namespace nunchi
