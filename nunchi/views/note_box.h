// Boxes with arrows between them, as lecture notes draw the way of data through a model:
//
//   ┌──────────────────────────────┐
//   │           [Softmax]
//   │ 고양이 → 잔다: (0.48)
//   └──────────────────────────────┘
//                  ↓
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nunchi {

class NoteBoxes {
 public:
  explicit NoteBoxes(int width) : width_(width) {}

  // A box with a title and lines. Lines that are too long are cut; wrapped() avoids it.
  void add(std::string_view title, const std::vector<std::string>& lines);
  // A line between two boxes.
  void heading(std::string_view text);

  // Columns of a line inside a box.
  int inner_width() const { return width_ - 4; }
  const std::string& text() const { return text_; }

 private:
  int width_;
  std::string text_;
};

// The parts, each followed by a space but for the last, in lines of at most `width` columns; lines
// after the first are indented.
std::vector<std::string> wrapped(const std::vector<std::string>& parts, int width, int indent = 2);

}  // namespace nunchi
