// What a metric counts in each line. A corpus's score is a function of the sum over its lines, so
// that a resampled corpus costs additions and no text is looked at twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace nunchi::evaluation {

// A file's lines; as references one such for each translator, all of the hypotheses' length.
using Lines = std::vector<std::string>;

// Bytes of a line. Its counts are 32 bits wide, and lower case can make it longer.
inline constexpr std::size_t kLongestLine = std::numeric_limits<std::int32_t>::max() / 8;

class Statistics {
 public:
  // Zeros.
  Statistics(std::size_t lines, std::size_t width)
      : lines_(lines), width_(width), counts_(lines * width) {}

  std::size_t lines() const { return lines_; }
  std::size_t width() const { return width_; }
  std::span<std::int32_t> line(std::size_t at) { return {&counts_[at * width_], width_}; }
  std::span<const std::int32_t> line(std::size_t at) const {
    return {&counts_[at * width_], width_};
  }
  // Over all lines: [width].
  std::vector<std::int64_t> sum() const;

 private:
  std::size_t lines_, width_;
  std::vector<std::int32_t> counts_;  // [lines, width]
};

// Throws Error unless there are lines, at least one reference, and as many lines in each; or
// when a line is longer than kLongestLine.
void check_corpus(std::span<const std::string> hypotheses, std::span<const Lines> references);

}  // namespace nunchi::evaluation
