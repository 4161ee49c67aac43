// The mean of the probabilities that several models give to the next token. Inference only.
#pragma once

#include <span>

#include "nunchi/tensor/tensor.h"

namespace nunchi {

// log(mean of softmax(scores)) of each row, [R, V]. All scores are [R, V] of one type, from 1 to
// kMaxMeanScores of them. A row's result depends on that row alone.
Tensor mean_probabilities(std::span<const Tensor> scores);

inline constexpr std::size_t kMaxMeanScores = 16;

}  // namespace nunchi
