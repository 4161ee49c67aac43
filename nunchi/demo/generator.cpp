#include "nunchi/demo/generator.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "nunchi/base/error.h"
#include "nunchi/base/random.h"

namespace nunchi {
namespace {

constexpr std::uint32_t kHeldOutShare = 16;  // one in 16
constexpr std::int64_t kMostPairs = 10'000'000;

// The purpose of a draw: the last word of its counter.
enum class Draw : std::uint32_t { choose_template, choose_values, hold_out };

philox::Words draw(std::uint64_t seed, std::uint64_t place, Draw what) {
  return philox::bits({static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32),
                       0, static_cast<std::uint32_t>(what)},
                      philox::key_of({.seed = seed}));
}

// A number below `end`.
int below(int end, std::uint32_t bits) {
  return static_cast<int>(static_cast<std::uint64_t>(bits) * static_cast<std::uint64_t>(end) >> 32);
}

// Two slots of the same kind get different values: the second skips the value of the first.
std::vector<int> choose_values(std::span<const int> kinds, const philox::Words& random) {
  std::vector<int> values;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const int size = demo::slot_kinds()[kinds[i]].values;
    const auto twin = std::ranges::find(kinds.begin(), kinds.begin() + i, kinds[i]);
    if (twin == kinds.begin() + i) {
      values.push_back(below(size, random[i]));
    } else {
      const int taken = values[twin - kinds.begin()];
      const int value = below(size - 1, random[i]);
      values.push_back(value < taken ? value : value + 1);
    }
  }
  return values;
}

void check_count(const char* what, std::int64_t count) {
  if (count >= 0 && count <= kMostPairs) return;
  throw UsageError("The demo cannot make " + std::to_string(count) + " " + what +
                   " pairs; ask for 0 to 10,000,000.");
}

}  // namespace

DemoGenerator::DemoGenerator(std::uint64_t seed) : seed_(seed) {
  for (const demo::Template& patterns : demo::templates()) patterns_.emplace_back(patterns);
}

DemoPair DemoGenerator::at(std::uint64_t index) const {
  const int chosen = below(templates(), draw(seed_, index, Draw::choose_template)[0]);
  const demo::SentencePair& pattern = patterns_[chosen];
  const auto values = choose_values(pattern.kinds(), draw(seed_, index, Draw::choose_values));
  demo::Rendering text = pattern(values);
  return {std::move(text.korean), std::move(text.english), chosen,
          demo::combination_of(pattern.kinds(), values)};
}

bool DemoGenerator::held_out(std::uint64_t combination) const {
  return draw(seed_, combination, Draw::hold_out)[0] % kHeldOutShare == 0;
}

int DemoGenerator::templates() { return static_cast<int>(demo::templates().size()); }

std::uint64_t DemoGenerator::possible_sentences() {
  std::uint64_t sum = 0;
  for (const demo::Template& patterns : demo::templates()) {
    sum += demo::SentencePair(patterns).sentences();
  }
  return sum;
}

DemoData make_demo_data(std::uint64_t seed, std::int64_t training, std::int64_t held_out) {
  check_count("training", training);
  check_count("held-out", held_out);
  const DemoGenerator generator(seed);
  DemoData data;
  std::unordered_set<std::string> sources, targets;
  const auto missing = [](const std::vector<DemoPair>& pairs, std::int64_t wanted) {
    return static_cast<std::int64_t>(pairs.size()) < wanted;
  };
  for (std::uint64_t index = 0;
       missing(data.training, training) || missing(data.held_out, held_out); ++index) {
    DemoPair pair = generator.at(index);
    const bool hold = generator.held_out(pair.combination);
    std::vector<DemoPair>& side = hold ? data.held_out : data.training;
    if (!missing(side, hold ? held_out : training)) continue;
    const bool new_source = sources.insert(pair.korean).second;
    const bool new_target = targets.insert(pair.english).second;
    if (new_source && new_target) side.push_back(std::move(pair));
  }
  return data;
}

}  // namespace nunchi
