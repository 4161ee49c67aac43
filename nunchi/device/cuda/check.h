// Errors of the CUDA runtime as Errors.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "nunchi/base/error.h"

namespace nunchi {

inline void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw Error(std::string("CUDA: ") + what + ": " + cudaGetErrorString(status) + ".");
}

}  // namespace nunchi
