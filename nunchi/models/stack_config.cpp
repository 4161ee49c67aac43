#include "nunchi/models/stack_config.h"

namespace nunchi {

std::int64_t StackConfig::longest() const {
  return position == nn::PositionKind::learned ? max_positions : kUnlimitedLength;
}

void StackConfig::check_options(const OptionReader& in) const {
  if (width % heads != 0) {
    in.fail({"heads", "width", "preset"}, "is " + std::to_string(heads) + ", but a width of " +
                                              std::to_string(width) +
                                              " cannot be cut into so many heads of equal width");
  }
}

void StackConfig::check_stack(const std::string& where) const {
  constexpr std::int64_t kMostHeads = stack_options::kMostHeads;
  if (width < 1 || heads < 1 || heads > kMostHeads || feed_forward < 1 || max_positions < 1) {
    throw Error(where + ": every size is at least one, and there are at most " +
                std::to_string(kMostHeads) + " heads.");
  }
  if (width % heads != 0) {
    throw Error(where + ": a width of " + std::to_string(width) + " cannot be cut into " +
                std::to_string(heads) + " heads of equal width.");
  }
}

nn::BlockConfig StackConfig::block() const {
  return {.width = width,
          .heads = heads,
          .hidden = feed_forward,
          .placement = norm_placement,
          .norm = norm,
          .activation = activation,
          .dropout = dropout,
          .attention_dropout = attention_dropout,
          .activation_dropout = activation_dropout};
}

nn::PositionOptions StackConfig::position_options() const {
  return {.kind = position, .width = width, .maximum = max_positions};
}

}  // namespace nunchi
