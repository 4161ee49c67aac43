#include "nunchi/evaluation/statistics.h"

#include <fmt/format.h>

#include "nunchi/base/error.h"

namespace nunchi::evaluation {
namespace {

void check_lengths(std::span<const std::string> lines, const std::string& name) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].size() <= kMaxLineBytes) continue;
    throw Error(fmt::format("line {} of {} has {} bytes; at most {} are allowed.", i + 1, name,
                            lines[i].size(), kMaxLineBytes));
  }
}

}  // namespace

std::vector<std::int64_t> Statistics::sum() const {
  std::vector<std::int64_t> total(width_);
  for (std::size_t i = 0; i < counts_.size(); ++i) total[i % width_] += counts_[i];
  return total;
}

void check_corpus(std::span<const std::string> hypotheses, std::span<const Lines> references) {
  if (hypotheses.empty()) throw Error("there are no lines to score.");
  if (references.empty()) throw Error("a score needs at least one reference.");
  check_lengths(hypotheses, "the hypotheses");
  for (std::size_t r = 0; r < references.size(); ++r) {
    if (references[r].size() != hypotheses.size()) {
      throw Error(fmt::format("reference {} has {} lines but there are {} hypotheses.", r + 1,
                              references[r].size(), hypotheses.size()));
    }
    check_lengths(references[r], fmt::format("reference {}", r + 1));
  }
}

}  // namespace nunchi::evaluation
