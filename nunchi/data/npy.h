// Reads features from matrices in NumPy's .npy format.
#pragma once

#include <filesystem>

#include "nunchi/base/random_access_file.h"
#include "nunchi/data/feature_batch.h"

namespace nunchi {

// A matrix [rows, F] of f32 in row-major order, format versions 1.0 to 3.0. Throws Error, naming
// the file, for anything else: no rows or columns, another type, numbers that are not finite, a
// size that does not match the header.
Features read_npy(const std::filesystem::path& path);
// The same for an open file.
Features parse_npy(const RandomAccessFile& file);

}  // namespace nunchi
