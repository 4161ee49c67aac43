#include "nunchi/nn/position/learned.h"

#include "nunchi/base/error.h"

namespace nunchi::nn {

Learned::Learned(Parameters& parameters, const std::string& name, const PositionOptions& options)
    : table_(parameters.add(name + ".weight", {options.maximum, options.width},
                            table_init(options))) {}

Variable Learned::embed(ContextBase&, std::int64_t length) const {
  if (length > table_.value().size(0)) {
    throw Error("a sentence of " + std::to_string(length) + " tokens is longer than the " +
                std::to_string(table_.value().size(0)) + " positions this model has learned.");
  }
  return table_;
}

}  // namespace nunchi::nn
