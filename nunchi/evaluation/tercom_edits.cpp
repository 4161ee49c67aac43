#include "nunchi/evaluation/tercom_edits.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace nunchi::evaluation {
namespace {

constexpr std::size_t kMaxPhrase = 10;    // words of a shifted phrase
constexpr std::size_t kMaxDistance = 50;  // words between a phrase and its occurrence
constexpr std::size_t kBandWidth = 25;    // words on either side of the diagonal
constexpr int kMaxTried = 1000;           // shifts of a pair of sentences

// A cell outside of its row's band. Small enough that adding a few edits does not overflow.
constexpr std::int32_t kUnreachable = 1 << 30;

}  // namespace

std::int64_t TercomEdits::count(const Sequence& hypothesis, const Sequence& reference) {
  if (reference.empty()) return std::ssize(hypothesis);
  if (hypothesis.empty()) return std::ssize(reference);
  words_ = hypothesis;
  reference_ = reference;
  set_bands();
  fill_matrix(0);
  tried_ = 0;
  std::int64_t shifts = 0;
  for (; find_best_shift(); ++shifts) fill_matrix(apply(best_, words_).first);
  return shifts + distance_;
}

void TercomEdits::set_bands() {
  const std::size_t rows = words_.size(), columns = reference_.size() + 1;
  const double ratio = static_cast<double>(reference_.size()) / static_cast<double>(rows);
  // With very different lengths a narrow band would not touch that of the row before.
  const double half = ratio / 2;
  const auto width = half > static_cast<double>(kBandWidth)
                         ? static_cast<std::size_t>(std::ceil(half + kBandWidth))
                         : kBandWidth;
  bands_.assign(1, {.begin = 0, .end = columns, .cells = 0});
  std::size_t cells = columns;
  for (std::size_t i = 1; i <= rows; ++i) {
    const auto diagonal = static_cast<std::size_t>(std::floor(static_cast<double>(i) * ratio));
    const Band band{.begin = diagonal > width ? diagonal - width : 0,
                    .end = i == rows ? columns : std::min(columns, diagonal + width),
                    .cells = cells};
    cells += band.end - band.begin;
    bands_.push_back(band);
  }
  cells_.resize(cells);
  std::iota(cells_.begin(), cells_.begin() + static_cast<std::ptrdiff_t>(columns), 0);
}

void TercomEdits::fill_matrix(std::size_t first_changed) {
  for (std::size_t row = first_changed + 1; row <= words_.size(); ++row) {
    next_row(row, words_[row - 1], cells(row - 1), cells(row));
  }
  distance_ = cell(words_.size(), reference_.size());
  align();
}

void TercomEdits::next_row(std::size_t row, Symbol word, const std::int32_t* previous,
                           std::int32_t* out) const {
  const Band &above = bands_[row - 1], &band = bands_[row];
  std::size_t j = band.begin;
  std::int32_t left = kUnreachable, diagonal = kUnreachable;
  if (j == 0) {
    diagonal = previous[0];
    left = out[0] = diagonal + 1;
    ++j;
  } else if (j > above.begin && j <= above.end) {
    diagonal = previous[j - 1 - above.begin];
  }
  const auto add_cell = [&](std::int32_t up) {
    const std::int32_t replaced = diagonal + (word == reference_[j - 1] ? 0 : 1);
    left = std::min(replaced, std::min(up, left) + 1);
    out[j - band.begin] = left;
    diagonal = up;
  };
  for (const std::size_t end = std::min(above.end, band.end); j < end; ++j) {
    add_cell(previous[j - above.begin]);
  }
  for (; j < band.end; ++j) add_cell(kUnreachable);
}

std::int32_t TercomEdits::cell(std::size_t row, std::size_t column) const {
  const Band& band = bands_[row];
  if (column < band.begin || column >= band.end) return kUnreachable;
  return cells_[band.cells + column - band.begin];
}

// Follows the cheapest edits back through the matrix. Of equally cheap ones it prefers to pair two
// words, then to drop a word of the hypothesis.
void TercomEdits::align() {
  std::size_t i = words_.size(), j = reference_.size();
  insert_after_.resize(j);
  hypothesis_errors_.assign(i + 1, 0);
  reference_errors_.assign(j + 1, 0);
  while (i > 0 || j > 0) {
    const bool equal = i > 0 && j > 0 && words_[i - 1] == reference_[j - 1];
    const bool paired = i > 0 && j > 0 && cell(i - 1, j - 1) + (equal ? 0 : 1) == cell(i, j);
    const bool dropped = !paired && i > 0 && (j == 0 || cell(i - 1, j) + 1 == cell(i, j));
    if (!dropped) {
      insert_after_[j - 1] = i;
      reference_errors_[j] = equal && paired ? 0 : 1;
    }
    if (paired || dropped) hypothesis_errors_[i] = equal && paired ? 0 : 1;
    if (!dropped) --j;
    if (paired || dropped) --i;
  }
  std::partial_sum(hypothesis_errors_.begin(), hypothesis_errors_.end(),
                   hypothesis_errors_.begin());
  std::partial_sum(reference_errors_.begin(), reference_errors_.end(), reference_errors_.begin());
}

bool TercomEdits::find_best_shift() {
  const auto has_error = [](const std::vector<std::int32_t>& errors, std::size_t start,
                            std::size_t length) { return errors[start + length] > errors[start]; };
  const std::size_t words = words_.size(), columns = reference_.size();
  found_ = false;
  for (std::size_t start = 0; start < words; ++start) {
    std::size_t at = start > kMaxDistance ? start - kMaxDistance : 0;
    for (; at < columns && at <= start + kMaxDistance; ++at) {
      const std::size_t longest = std::min({kMaxPhrase, words - start, columns - at});
      for (std::size_t length = 1; length <= longest; ++length) {
        if (words_[start + length - 1] != reference_[at + length - 1]) break;
        const bool within = insert_after_[at] > start && insert_after_[at] <= start + length;
        if (within || !has_error(hypothesis_errors_, start, length) ||
            !has_error(reference_errors_, at, length)) {
          continue;
        }
        try_targets({.start = start, .length = length, .target = 0}, at);
        if (tried_ >= kMaxTried) return false;
      }
    }
  }
  return found_;
}

void TercomEdits::try_targets(Shift shift, std::size_t at) {
  for (std::size_t offset = 0; offset <= shift.length; ++offset) {
    const std::size_t target = at + offset == 0 ? 0 : insert_after_[at + offset - 1];
    if (offset > 0 && target == shift.target) continue;
    shift.target = target;
    ++tried_;
    shifted_ = words_;
    const Changed changed = apply(shift, shifted_);
    const std::int32_t distance = distance_after(changed);
    if (distance > max_useful_distance()) continue;
    const auto rank = [](std::int32_t cost, const Shift& s) {
      return std::tuple(cost, kMaxPhrase - s.length, s.start, s.target);
    };
    if (found_ && rank(best_distance_, best_) <= rank(distance, shift)) continue;
    found_ = true;
    best_ = shift;
    best_distance_ = distance;
  }
}

std::int32_t TercomEdits::distance_after(const Changed& changed) {
  if (changed.first == changed.last) return distance_;
  const std::int32_t useful = max_useful_distance();
  const std::int32_t* previous = cells(changed.first);
  for (std::size_t row = changed.first + 1; row <= words_.size(); ++row) {
    const std::size_t size = bands_[row].end - bands_[row].begin;
    std::vector<std::int32_t>& out = rows_[row % 2];
    out.resize(std::max(out.size(), size));
    next_row(row, shifted_[row - 1], previous, out.data());
    previous = out.data();
    // Distances never fall from row to row. Where the rest of the words is unchanged, the distance
    // changes at least as much as the cell that changes least.
    std::int32_t lowest = kUnreachable;
    if (row < changed.last) {
      for (std::size_t i = 0; i < size; ++i) lowest = std::min(lowest, out[i]);
    } else {
      const std::int32_t* unshifted = cells(row);
      for (std::size_t i = 0; i < size; ++i) lowest = std::min(lowest, out[i] - unshifted[i]);
      lowest += distance_;
    }
    if (lowest > useful) return kUnreachable;
  }
  return previous[reference_.size() - bands_.back().begin];
}

TercomEdits::Changed TercomEdits::apply(const Shift& shift, Sequence& words) {
  const auto at = [&](std::size_t index) {
    return words.begin() + static_cast<std::ptrdiff_t>(index);
  };
  const std::size_t end = shift.start + shift.length;
  if (shift.target < shift.start) {
    std::rotate(at(shift.target), at(shift.start), at(end));
    return {.first = shift.target, .last = end};
  }
  // A target inside of the phrase moves it by the distance from its beginning.
  const std::size_t last =
      shift.target > end ? shift.target : std::min(shift.target + shift.length, words.size());
  std::rotate(at(shift.start), at(end), at(last));
  return {.first = shift.start, .last = last > end ? last : shift.start};
}

}  // namespace nunchi::evaluation
