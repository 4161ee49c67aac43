// UnitOptions in device memory.
#pragma once

#include <span>
#include <vector>

#include "nunchi/kernels/search.h"
#include "nunchi/ops/tensors.h"

namespace nunchi::testing {

class DeviceOptions {
 public:
  DeviceOptions() = default;
  DeviceOptions(ContextBase& context, const std::vector<kernels::UnitOptions>& units) {
    const auto bytes = static_cast<std::int64_t>(units.size() * sizeof(kernels::UnitOptions));
    bytes_ = from_host(context,
                       std::span(reinterpret_cast<const std::int8_t*>(units.data()),
                                 static_cast<std::size_t>(bytes)),
                       {bytes});
  }
  const kernels::UnitOptions* data() const {
    return reinterpret_cast<const kernels::UnitOptions*>(bytes_.data<std::int8_t>());
  }

 private:
  Tensor bytes_;
};

}  // namespace nunchi::testing
