#include "nunchi/nn/row_ranges.h"

#include <algorithm>
#include <iterator>

namespace nunchi::nn {

RowRanges::RowRanges(std::int64_t rows) : rows_(rows), free_rows_(rows) {
  if (rows > 0) free_[0] = rows;
}

std::optional<std::int64_t> RowRanges::take(std::int64_t rows) {
  if (rows == 0) return 0;
  const auto found =
      std::ranges::find_if(free_, [&](const auto& range) { return range.second >= rows; });
  if (found == free_.end()) return std::nullopt;
  const auto [begin, size] = *found;
  free_.erase(found);
  if (size > rows) free_[begin + rows] = size - rows;
  free_rows_ -= rows;
  return begin;
}

void RowRanges::release(std::int64_t begin, std::int64_t rows) {
  if (rows == 0) return;
  free_rows_ += rows;
  const auto following = free_.lower_bound(begin);
  if (following != free_.end() && following->first == begin + rows) {
    rows += following->second;
    free_.erase(following);
  }
  const auto next = free_.lower_bound(begin);
  if (next != free_.begin()) {
    const auto preceding = std::prev(next);
    if (preceding->first + preceding->second == begin) {
      preceding->second += rows;
      return;
    }
  }
  free_[begin] = rows;
}

}  // namespace nunchi::nn
