#include "nunchi/demo/generator.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "nunchi/base/error.h"
#include "nunchi/base/random.h"

namespace nunchi {
namespace {

constexpr std::uint32_t kHeldOutInterval = 16;  // one combination in 16 is held out
constexpr std::int64_t kMaxPairs = 10'000'000;

// The purpose of a random draw: the last word of its Philox counter.
enum class Draw : std::uint32_t { choose_template, choose_values, hold_out };

philox::Words draw(std::uint64_t seed, std::uint64_t index, Draw purpose) {
  return philox::bits({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                       0, static_cast<std::uint32_t>(purpose)},
                      philox::key_of({.seed = seed}));
}

// A number in [0, end), computed from random bits.
int number_below(int end, std::uint32_t bits) {
  return static_cast<int>(static_cast<std::uint64_t>(bits) * static_cast<std::uint64_t>(end) >> 32);
}

// Two slots of the same kind get different values: the second skips the value of the first.
std::vector<int> choose_values(std::span<const int> kinds, const philox::Words& random) {
  std::vector<int> values;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const int size = demo::slot_kinds()[kinds[i]].values;
    const auto same_kind = std::ranges::find(kinds.begin(), kinds.begin() + i, kinds[i]);
    if (same_kind == kinds.begin() + i) {
      values.push_back(number_below(size, random[i]));
    } else {
      const int first_value = values[same_kind - kinds.begin()];
      const int value = number_below(size - 1, random[i]);
      values.push_back(value < first_value ? value : value + 1);
    }
  }
  return values;
}

void check_count(const char* purpose, std::int64_t count) {
  if (count >= 0 && count <= kMaxPairs) return;
  throw UsageError("The demo cannot make " + std::to_string(count) + " " + purpose +
                   " pairs; ask for 0 to 10,000,000.");
}

}  // namespace

DemoGenerator::DemoGenerator(std::uint64_t seed) : seed_(seed) {
  for (const demo::Template& pattern : demo::templates()) templates_.emplace_back(pattern);
}

DemoPair DemoGenerator::at(std::uint64_t index) const {
  const int chosen = number_below(template_count(), draw(seed_, index, Draw::choose_template)[0]);
  const demo::ParsedTemplate& sentence = templates_[chosen];
  const auto values = choose_values(sentence.kinds(), draw(seed_, index, Draw::choose_values));
  demo::Rendering text = sentence.render(values);
  return {std::move(text.korean), std::move(text.english), chosen,
          demo::combination_key(sentence.kinds(), values), std::move(text.links)};
}

bool DemoGenerator::is_held_out(std::uint64_t combination) const {
  return draw(seed_, combination, Draw::hold_out)[0] % kHeldOutInterval == 0;
}

int DemoGenerator::template_count() { return static_cast<int>(demo::templates().size()); }

std::uint64_t DemoGenerator::possible_sentences() {
  std::uint64_t sum = 0;
  for (const demo::Template& pattern : demo::templates()) {
    sum += demo::ParsedTemplate(pattern).sentence_count();
  }
  return sum;
}

DemoData make_demo_data(std::uint64_t seed, std::int64_t training, std::int64_t held_out) {
  check_count("training", training);
  check_count("held-out", held_out);
  const DemoGenerator generator(seed);
  DemoData data;
  std::unordered_set<std::string> sources, targets;
  const auto needs_more = [](const std::vector<DemoPair>& pairs, std::int64_t wanted) {
    return static_cast<std::int64_t>(pairs.size()) < wanted;
  };
  for (std::uint64_t index = 0;
       needs_more(data.training, training) || needs_more(data.held_out, held_out); ++index) {
    DemoPair pair = generator.at(index);
    const bool is_held_out = generator.is_held_out(pair.combination);
    std::vector<DemoPair>& pairs = is_held_out ? data.held_out : data.training;
    if (!needs_more(pairs, is_held_out ? held_out : training)) continue;
    const bool new_source = sources.insert(pair.korean).second;
    const bool new_target = targets.insert(pair.english).second;
    if (new_source && new_target) pairs.push_back(std::move(pair));
  }
  return data;
}

}  // namespace nunchi
