// The counts of a metric for each line. The score of a corpus is a function of their sum, so that
// resampling a corpus only adds counts and does not read the text again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace nunchi::evaluation {

// The lines of a file. Each reference is one such file with as many lines as the hypotheses.
using Lines = std::vector<std::string>;

// Maximum bytes of a line: counts have 32 bits, and lowercasing can make a line longer.
inline constexpr std::size_t kMaxLineBytes = std::numeric_limits<std::int32_t>::max() / 8;

class Statistics {
 public:
  // All zero.
  Statistics(std::size_t lines, std::size_t width)
      : lines_(lines), width_(width), counts_(lines * width) {}

  std::size_t line_count() const { return lines_; }
  std::size_t width() const { return width_; }
  std::span<std::int32_t> line(std::size_t index) { return {&counts_[index * width_], width_}; }
  std::span<const std::int32_t> line(std::size_t index) const {
    return {&counts_[index * width_], width_};
  }
  // The sum over all lines: [width].
  std::vector<std::int64_t> sum() const;
  bool operator==(const Statistics&) const = default;

 private:
  std::size_t lines_, width_;
  std::vector<std::int32_t> counts_;  // [lines, width]
};

// Throws Error if there are no lines or no references, if a reference has another number of lines
// than the hypotheses, or if a line is longer than kMaxLineBytes.
void check_corpus(std::span<const std::string> hypotheses, std::span<const Lines> references);

}  // namespace nunchi::evaluation
