#include "nunchi/evaluation/statistics.h"

#include <fmt/format.h>

#include "nunchi/base/error.h"

namespace nunchi::evaluation {
namespace {

void check_lengths(std::span<const std::string> lines, const std::string& of_what) {
  for (std::size_t at = 0; at < lines.size(); ++at) {
    if (lines[at].size() <= kLongestLine) continue;
    throw Error(fmt::format("line {} of {} has {} bytes; at most {} are allowed.", at + 1, of_what,
                            lines[at].size(), kLongestLine));
  }
}

}  // namespace

std::vector<std::int64_t> Statistics::sum() const {
  std::vector<std::int64_t> total(width_);
  for (std::size_t at = 0; at < counts_.size(); ++at) total[at % width_] += counts_[at];
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
