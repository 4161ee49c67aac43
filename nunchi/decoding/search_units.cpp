#include "nunchi/decoding/search_units.h"

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

std::int64_t longest_text(const SequenceModel& model, const SearchOptions& options,
                          std::int64_t prefix_length) {
  return std::min(prefix_length + options.max_length, model.max_length());
}

std::int64_t longest_target(const SequenceModel& model, const SearchOptions& options,
                            std::int64_t source_length) {
  constexpr std::int64_t kFactor = 3, kMore = 20;
  const std::int64_t wanted =
      std::max(options.min_length, std::min(options.max_length, kFactor * source_length + kMore));
  return std::clamp<std::int64_t>(wanted, 1, model.max_length() - 1);
}

}  // namespace

Units make_units(const SequenceModel& model, const SearchInput& input,
                 const SearchOptions& options) {
  const Ragged* source = input.source ? &input.source->rows() : nullptr;
  const std::int64_t sentences = source != nullptr ? source->sentences : std::ssize(input.prefixes);
  const std::int64_t each = options.sample ? options.n_best : 1;
  const auto index = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  Units units{.count = sentences * each, .beam = options.sample ? 1 : options.beam_size};
  for (std::int64_t u = 0; u < units.count; ++u) {
    const std::int64_t b = u / each;
    const std::span<const std::int32_t> prefix =
        input.prefixes.empty() ? std::span<const std::int32_t>() : input.prefixes[index(b)];
    const std::int64_t number = input.numbers.empty() ? b : input.numbers[index(b)];
    const std::int64_t prefix_length = static_cast<std::int64_t>(prefix.size());
    // A prefix is kept whole and gets at least one token more.
    const std::int64_t longest =
        std::max(source != nullptr ? longest_target(model, options, source->lengths[index(b)])
                                   : longest_text(model, options, prefix_length),
                 prefix_length + 1);
    // The last token is not fed again; <s>, which begins a target, takes a position.
    if (longest > model.max_length() - (source != nullptr ? 1 : 0)) {
      throw Error("a prefix of " + std::to_string(prefix_length) +
                  " tokens is too long for a model that knows " +
                  std::to_string(model.max_length()) + " positions.");
    }
    units.source.push_back(static_cast<std::int32_t>(b));
    units.stream.push_back(number * each + u % each);
    units.max_length.push_back(static_cast<std::int32_t>(longest));
    units.prefix_length.push_back(static_cast<std::int32_t>(prefix_length));
    units.prefix.push_back(prefix);
    units.longest = std::max(units.longest, longest);
  }
  units.stride = units.longest + 1;
  return units;
}

}  // namespace nunchi
