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
#include <vector>

namespace nunchi {

struct AttentionMatrix {
  std::vector<std::string> sources;  // S pieces or words
  std::vector<std::string> targets;  // T pieces or words
  std::vector<float> weights;        // [T, S]
};

// The same attention between words: pieces are joined from one that begins with "▁" (as
// SentencePiece marks words) up to the next; "<0xEA>" is its byte; <s> and </s> stay by themselves.
// A word is looked at as much as its pieces together (a sum over columns) and looks as its pieces
// do on average (a mean over rows), so rows that sum to 1 still do. Throws Error when there are not
// T × S weights.
AttentionMatrix merged_into_words(const AttentionMatrix& pieces);

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
