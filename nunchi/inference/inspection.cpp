#include "nunchi/inference/inspection.h"

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

const ValueMatrix* Inspection::tensor(std::string_view tap, const InspectedPlace& place) const {
  for (const InspectedTensor& tensor : tensors) {
    if (tensor.tap == tap && tensor.place == place) return &tensor.values;
  }
  return nullptr;
}

const InspectedHead* Inspection::head(const InspectedPlace& place) const {
  for (const InspectedHead& head : attention) {
    if (head.place == place) return &head;
  }
  return nullptr;
}

AttentionAxes axes_of(const Inspection& inspection, const InspectedPlace& place) {
  const bool has_source = !inspection.source.pieces.empty();
  if (place.part == "self_attention") {
    const InspectedText& own =
        place.stack == "encoder" && has_source ? inspection.source : inspection.input;
    return {own, own};
  }
  return {inspection.target, inspection.source};
}

ValueMatrix columns_of(const ValueMatrix& matrix, std::int64_t begin, std::int64_t count) {
  ValueMatrix part{.rows = matrix.rows, .columns = count, .values = {}};
  part.values.reserve(index(matrix.rows * count));
  for (std::int64_t i = 0; i < matrix.rows; ++i) {
    const auto row = matrix.row(i).subspan(index(begin), index(count));
    part.values.insert(part.values.end(), row.begin(), row.end());
  }
  return part;
}

ValueMatrix mean_of(std::span<const ValueMatrix* const> matrices) {
  if (matrices.empty()) throw Error("mean_of: there are no matrices.");
  const ValueMatrix& first = *matrices.front();
  ValueMatrix mean{.rows = first.rows, .columns = first.columns, .values = {}};
  std::vector<double> sums(first.values.size(), 0.0);
  for (const ValueMatrix* matrix : matrices) {
    if (matrix->rows != first.rows || matrix->columns != first.columns) {
      throw Error("mean_of: the matrices differ in size.");
    }
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += double{matrix->values[i]};
  }
  mean.values.reserve(sums.size());
  for (const double sum : sums) {
    mean.values.push_back(static_cast<float>(sum / static_cast<double>(matrices.size())));
  }
  return mean;
}

ValueMatrix joined_into_words(const ValueMatrix& weights,
                              std::span<const std::pair<int, int>> query_words,
                              std::span<const std::pair<int, int>> key_words) {
  ValueMatrix joined{
      .rows = std::ssize(query_words), .columns = std::ssize(key_words), .values = {}};
  joined.values.reserve(query_words.size() * key_words.size());
  for (const auto& [first_row, end_row] : query_words) {
    for (const auto& [first_column, end_column] : key_words) {
      double sum = 0;
      for (int row = first_row; row < end_row; ++row) {
        for (int column = first_column; column < end_column; ++column) {
          sum += double{weights.at(row, column)};
        }
      }
      joined.values.push_back(static_cast<float>(sum / (end_row - first_row)));
    }
  }
  return joined;
}

}  // namespace nunchi
