// Attention weights as text for a terminal: a row for each target, a column for each source.
//
//          서
//          울 만
//          에 나
//          서 요
//   meet │   ██*│ 만나요 97%
//     in │▓▓*▓▓ │ 서울에서 55%
//
// Sources are written vertically above their columns: a Hangul syllable is as wide as a cell, and
// twenty words fit where only five would fit horizontally. The star marks the strongest source of a
// row; its name follows at the end of the row.
#pragma once

#include <string>

#include "nunchi/inference/alignment.h"

namespace nunchi {

struct AttentionPictureOptions {
  // Maximum columns of a line, at least 40; sources that do not fit continue below.
  int width = 80;
  // Adds the colours of a 256-colour terminal to the shades.
  bool color = false;
};

// The picture, each line ended by '\n'; empty without sources or targets. Invalid UTF-8 is
// replaced, control characters are shown as '?', weights that are not finite as "??". Throws Error
// unless there are T × S weights.
std::string attention_picture(const AttentionMatrix& attention,
                              const AttentionPictureOptions& options = {});

}  // namespace nunchi
