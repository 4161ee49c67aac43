// What a language model predicted, as text for a terminal: where it looked, and the likeliest
// tokens as bars.
//
//   ▁The │██*░░ ▒▒ │ ▁to 61%
//
//   ▁be   █████████████▌        67.4%   ▁do 12.0%  ▁have 4.1%
#pragma once

#include <string>

#include "nunchi/inference/inspection.h"
#include "nunchi/views/attention_picture.h"

namespace nunchi {

// The attention with which each of the last `steps` steps was predicted (0: of all steps), a row
// for each: the mean of the heads of the last layer. Of more than 60 steps the first are shown.
// Empty for an inspection without steps or without attention.
AttentionMatrix prediction_attention(const Inspection& inspection, std::size_t steps = 0);

// Its picture, then the likeliest tokens of each step: one line for each step, or, for up to three
// steps, one line for each token.
std::string prediction_picture(const Inspection& inspection, std::size_t steps = 0,
                               const AttentionPictureOptions& options = {});

}  // namespace nunchi
