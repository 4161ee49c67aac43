// Who looks at whom, as text for a terminal: a row for each target, a column for each source.
//
//          서
//          울 만
//          에 나
//          서 요
//   meet │   ██*│ 만나요 97%
//     in │▓▓*▓▓ │ 서울에서 55%
//
// Sources are written downwards over their columns: a Hangul syllable is as wide as a cell, and
// twenty words stand where sideways only five would. The star marks the strongest source of a
// row, which stands in words at its end.
#pragma once

#include <string>

#include "nunchi/inference/alignment.h"

namespace nunchi {

struct AttentionPictureOptions {
  // No line takes more columns; where the sources are too many, they continue below. Less than 40
  // is taken as 40.
  int width = 80;
  // Colours of a 256-colour terminal, on top of the shades that are always there.
  bool color = false;
};

// The picture, every line ended by '\n'; empty without sources or targets. Text that is no UTF-8 is
// repaired, control characters are shown as '?', weights that are not finite as "??". Throws Error
// when there are not T × S weights.
std::string attention_picture(const AttentionMatrix& attention,
                              const AttentionPictureOptions& options = {});

}  // namespace nunchi
