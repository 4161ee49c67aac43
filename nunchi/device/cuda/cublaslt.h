// The functions of cuBLASLt, looked up at run time: the program also starts on machines without
// CUDA's libraries, and only a CUDA context needs them.
#pragma once

#include <cublasLt.h>

namespace nunchi {

struct CublasLt {
  decltype(&cublasLtGetStatusString) status_string;
  decltype(&cublasLtGetVersion) version;
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtMatrixLayoutInit_internal) init_matrix_layout;
  decltype(&cublasLtMatmulDescInit_internal) init_matmul;
  decltype(&cublasLtMatmulDescSetAttribute) set_matmul_attribute;
  decltype(&cublasLtMatmulPreferenceInit_internal) init_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference_attribute;
  decltype(&cublasLtMatmulAlgoGetHeuristic) propose_algorithms;
  decltype(&cublasLtMatmulAlgoCheck) check_algorithm;
  decltype(&cublasLtMatmul) matmul;
};

// Loads the library at the first call: the one that the environment variable NUNCHI_CUBLASLT names
// or, if it is unset, the version that this program was built with, from the folders of the dynamic
// linker or from CUDA's. Throws Error if it is missing or lacks a function.
const CublasLt& cublaslt();

}  // namespace nunchi
