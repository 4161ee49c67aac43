#include "nunchi/models/format/int8_tensors.h"

#include <cmath>

#include "nunchi/base/error.h"
#include "nunchi/kernels/int8_product.h"

namespace nunchi {
namespace {

std::vector<std::int64_t> stored_shape(const nn::ParameterEntry& entry) {
  return {kernels::int8_panels(entry.shape[0]), kernels::int8_groups(entry.shape[1]),
          kernels::kInt8PanelRows, kernels::kInt8Group};
}

std::vector<float> read_scales(const SafetensorsFile& file, const nn::ParameterEntry& entry,
                               const std::string& where) {
  const std::string name = int8_scale_name(entry);
  std::vector<float> scales = file.values<float>(*file.find(name));
  for (const float scale : scales) {
    if (!std::isfinite(scale) || scale < 0) {
      throw Error(where + ": the tensor '" + name +
                  "' has a scale that is negative or not finite.");
    }
  }
  return scales;
}

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  return {tensor.bytes_begin(), tensor.bytes()};
}

}  // namespace

std::string int8_scale_name(const nn::ParameterEntry& entry) { return entry.name + ".scale"; }

void check_int8_tensors(const SafetensorsFile& file, const nn::ParameterEntry& entry,
                        const std::string& where) {
  const std::string name = int8_scale_name(entry);
  const StoredTensor& values = *file.find(entry.name);
  const StoredTensor* scales = file.find(name);
  if (entry.use != nn::ParameterUse::product || entry.shape.dimensions() != 2 ||
      entry.shape[1] > kernels::kInt8MaxColumns) {
    throw Error(where + ": the tensor '" + entry.name +
                "' has u8 numbers, but only the weights of matrix products can have them.");
  }
  if (values.shape != stored_shape(entry)) {
    throw Error(where + ": the tensor '" + entry.name +
                "' does not have the int8 layout of a weight of shape " + entry.shape.to_string() +
                ".");
  }
  if (scales == nullptr) {
    throw Error(where + ": the tensor '" + name + "' is missing.");
  }
  if (scales->dtype != DType::f32 || scales->shape != std::vector<std::int64_t>{entry.shape[0]}) {
    throw Error(where + ": the tensor '" + name + "' must have " + std::to_string(entry.shape[0]) +
                " f32 numbers.");
  }
}

void read_int8(const SafetensorsFile& file, const nn::ParameterEntry& entry,
               const std::string& where) {
  const FormedWeight& form = entry.variable.forms()->int8();
  file.read(*file.find(entry.name), {form.values.bytes_begin(), form.values.bytes()});
  const std::vector<float> scales = read_scales(file, entry, where);
  std::copy(scales.begin(), scales.end(), form.scales.data<float>());
}

std::vector<float> read_int8_as_f32(const SafetensorsFile& file, const nn::ParameterEntry& entry,
                                    const std::string& where) {
  const std::int64_t n = entry.shape[0], k = entry.shape[1];
  const auto bytes = file.values<std::uint8_t>(*file.find(entry.name));
  const std::vector<float> scales = read_scales(file, entry, where);
  std::vector<float> values(static_cast<std::size_t>(n * k));
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t column = 0; column < k; ++column) {
      const int byte = bytes[static_cast<std::size_t>(kernels::int8_index(row, column, k))];
      values[static_cast<std::size_t>(row * k + column)] =
          static_cast<float>(byte - kernels::kInt8Zero) * scales[static_cast<std::size_t>(row)];
    }
  }
  return values;
}

std::vector<SafetensorsEntry> int8_entries(const nn::ParameterEntry& entry) {
  const FormedWeight& form = entry.variable.forms()->int8();
  return {{entry.name, DType::u8, stored_shape(entry), bytes_of(form.values)},
          {int8_scale_name(entry), DType::f32, {entry.shape[0]}, bytes_of(form.scales)}};
}

}  // namespace nunchi
