// Reads features from matrices in NumPy's .npy format.
#pragma once

#include <filesystem>
#include <span>

#include "nunchi/data/feature_batch.h"

namespace nunchi {

// A matrix [rows, F] of f32 in row-major order, format versions 1.0 to 3.0. Throws Error, naming
// the file, for anything else: no rows or columns, another type, numbers that are not finite, a
// size that does not match the header.
Features read_npy(const std::filesystem::path& path);
// The same for the bytes of a file, called `name` in errors.
Features parse_npy(std::span<const std::byte> bytes, const std::string& name);

}  // namespace nunchi
