#include "nunchi/data/split_batch.h"

#include <cstdlib>
#include <iterator>
#include <utility>

namespace nunchi {
namespace {

std::int64_t rows_of(const Tokens& tokens) { return std::ssize(tokens); }
std::int64_t rows_of(const Features& features) { return features.rows(); }

std::int64_t sentence_rows(const HostBatch& batch, std::size_t i) {
  return std::ssize(batch.targets[i]) +
         std::visit([&](const auto& list) { return list.empty() ? 0 : rows_of(list[i]); },
                    batch.sources);
}

template <class T>
std::vector<T> slice(const std::vector<T>& list, std::size_t begin, std::size_t end) {
  if (list.empty()) return {};  // a text has no sources
  return {list.begin() + static_cast<std::ptrdiff_t>(begin),
          list.begin() + static_cast<std::ptrdiff_t>(end)};
}

// Tokens to predict minus tokens of the target: the same for each sentence of a batch.
std::int64_t extra_target_tokens(const HostBatch& batch) {
  std::int64_t tokens = 0;
  for (const Tokens& target : batch.targets) tokens += std::ssize(target);
  return (batch.target_tokens - tokens) / std::ssize(batch.targets);
}

HostBatch part_of(const HostBatch& batch, std::size_t begin, std::size_t end) {
  HostBatch part{
      .epoch = batch.epoch,
      .number = batch.number,
      .epoch_batches = batch.epoch_batches,
      .sources = std::visit(
          [&](const auto& list) { return SourceExamples(slice(list, begin, end)); }, batch.sources),
      .targets = slice(batch.targets, begin, end),
      .pairs = slice(batch.pairs, begin, end)};
  part.target_tokens = extra_target_tokens(batch) * std::ssize(part.targets);
  for (const Tokens& target : part.targets) part.target_tokens += std::ssize(target);
  return part;
}

}  // namespace

std::int64_t batch_rows(const HostBatch& batch) {
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < batch.targets.size(); ++i) rows += sentence_rows(batch, i);
  return rows;
}

std::vector<HostBatch> halves_of(const HostBatch& batch) {
  const std::int64_t half = batch_rows(batch) / 2;
  const std::size_t sentences = batch.targets.size();
  std::size_t middle = 1;
  std::int64_t rows = sentence_rows(batch, 0);
  // Another sentence joins the first part if that brings it closer to one half.
  while (middle + 1 < sentences &&
         std::abs(rows + sentence_rows(batch, middle) - half) <= std::abs(rows - half)) {
    rows += sentence_rows(batch, middle++);
  }
  return {part_of(batch, 0, middle), part_of(batch, middle, sentences)};
}

std::vector<HostBatch> split_batch(const HostBatch& batch, std::int64_t max_rows) {
  if (batch.targets.size() <= 1 || batch_rows(batch) <= max_rows) return {batch};
  std::vector<HostBatch> parts;
  for (const HostBatch& half : halves_of(batch)) {
    for (HostBatch& part : split_batch(half, max_rows)) parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace nunchi
