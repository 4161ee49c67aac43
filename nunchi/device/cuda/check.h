// Turns errors of the CUDA runtime into Errors.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "nunchi/base/error.h"

namespace nunchi {

// `what` names the operation: "CUDA: WHAT: REASON."
inline void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw Error(std::string("CUDA: ") + what + ": " + cudaGetErrorString(status) + ".");
}

}  // namespace nunchi
