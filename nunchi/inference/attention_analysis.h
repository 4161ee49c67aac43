// What attention weights say beyond themselves: the kind of each head, attention rollout, and the
// heads that align target and source.
#pragma once

#include "nunchi/inference/inspection.h"
#include "nunchi/models/format/alignment_heads.h"

namespace nunchi {

// Measures what a head of self-attention, or of attention to a source, looks at:
//   previous, next   the mean weight on the token before or after, where there is one
//   first            the mean weight on the first token, but for the first query
//   same word        the mean weight on the pieces of the query's own word
//   broad            the mean entropy of a row, as a share of the largest possible one
// Attention to a source has only the last and "first". The name is that of the largest of the
// others from 0.4 on, else "broad" from 0.75 on, else "mixed".
HeadKind measured_kind(const InspectedPlace& place, const ValueMatrix& weights,
                       std::span<const std::pair<int, int>> words);

// Attention rollout (Abnar and Zuidema 2020): the weights of all layers multiplied, where each
// layer's mean over its heads counts half and the residual connection the other half. Of a decoder
// with a source: the share of each source token, through encoder and decoder, and the share of each
// input token; each row sums to 1. `attention` has the heads of all layers.
std::vector<InspectedWeights> rollout_of(std::span<const InspectedHead> attention);

// The layer and the heads of attention to a source whose weights are closest to a one-to-one
// alignment. The measure of a head is the mean of two numbers: the mean over the target tokens of
// the largest weight, and the mean over the source tokens of the largest weight that any target
// token gives them. End tokens do not count. A head that looks at one place from everywhere has a
// low measure, and so has one that looks everywhere. Nothing without such attention.
std::optional<InspectedAlignment> alignment_of(std::span<const InspectedHead> attention);
// The mean of given heads, which may belong to several layers; the result names the layer with the
// most of them. Heads that do not exist are left out.
std::optional<InspectedAlignment> alignment_of(std::span<const InspectedHead> attention,
                                               const AlignmentHeads& heads);

}  // namespace nunchi
