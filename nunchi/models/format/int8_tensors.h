// Weights of 8 bits in model.safetensors. A weight NAME [N, K] is stored as two tensors:
//
//   NAME         U8   [N / 16, K / 4, 16, 4], rounded up: the bytes of kernels/int8_product.h
//   NAME.scale   F32  [N]
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nunchi/models/format/safetensors.h"
#include "nunchi/nn/parameters.h"

namespace nunchi {

std::string int8_scale_name(const nn::ParameterEntry& entry);

// Throws Error, naming `where`, unless the file has both tensors with the right types and shapes
// and the parameter may be stored in this way.
void check_int8_tensors(const SafetensorsFile& file, const nn::ParameterEntry& entry,
                        const std::string& where);

// Reads a weight that was checked into the memory of a parameter that exists as int8 only. Throws
// Error for scales that are negative or not finite.
void read_int8(const SafetensorsFile& file, const nn::ParameterEntry& entry,
               const std::string& where);
// Reads it as f32 [N, K].
std::vector<float> read_int8_as_f32(const SafetensorsFile& file, const nn::ParameterEntry& entry,
                                    const std::string& where);

// The tensors to write for a parameter that exists as int8 only. Their bytes are those of the
// parameter, which must outlive them.
std::vector<SafetensorsEntry> int8_entries(const nn::ParameterEntry& entry);

}  // namespace nunchi
