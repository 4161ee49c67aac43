#include "nunchi/device/cuda/cublaslt.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

std::string major_version() { return std::to_string(CUBLAS_VER_MAJOR); }

std::string how_to_get_it() {
  return " Install cuBLAS of CUDA " + major_version() + " (package libcublas-" + major_version() +
         "-0 of NVIDIA's apt repository, or pip install nvidia-cublas), add its folder to "
         "LD_LIBRARY_PATH if it is not found, or use --device cpu.";
}

// Names to try, in this order.
std::vector<std::string> candidates() {
  if (const char* chosen = std::getenv("NUNCHI_CUBLASLT"); chosen != nullptr && *chosen != '\0') {
    return {chosen};
  }
  const std::string name = "libcublasLt.so." + major_version();
  std::vector<std::string> names = {name};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* folder = std::getenv(variable);
    if (folder != nullptr) names.push_back(std::string(folder) + "/lib64/" + name);
  }
  names.push_back("/usr/local/cuda/lib64/" + name);
  return names;
}

void* open_library() {
  std::string reason;
  for (const std::string& name : candidates()) {
    if (void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    if (reason.empty()) reason = ::dlerror();
  }
  throw Error("--device cuda needs NVIDIA's library " + candidates().front() +
              ", which cannot be loaded (" + reason + ")." + how_to_get_it());
}

CublasLt load() {
  void* library = open_library();  // stays open until the process ends
  CublasLt functions{};
  const auto find = [library](auto& function, const char* name) {
    void* address = ::dlsym(library, name);
    if (address == nullptr) {
      throw Error("NVIDIA's library " + candidates().front() + " has no function " + name + "." +
                  how_to_get_it());
    }
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
  };
  find(functions.status_string, "cublasLtGetStatusString");
  find(functions.version, "cublasLtGetVersion");
  find(functions.create, "cublasLtCreate");
  find(functions.destroy, "cublasLtDestroy");
  find(functions.init_matrix_layout, "cublasLtMatrixLayoutInit_internal");
  find(functions.init_matmul, "cublasLtMatmulDescInit_internal");
  find(functions.set_matmul_attribute, "cublasLtMatmulDescSetAttribute");
  find(functions.init_preference, "cublasLtMatmulPreferenceInit_internal");
  find(functions.set_preference_attribute, "cublasLtMatmulPreferenceSetAttribute");
  find(functions.propose_algorithms, "cublasLtMatmulAlgoGetHeuristic");
  find(functions.check_algorithm, "cublasLtMatmulAlgoCheck");
  find(functions.matmul, "cublasLtMatmul");
  return functions;
}

}  // namespace

const CublasLt& cublaslt() {
  static const CublasLt functions = load();
  return functions;
}

}  // namespace nunchi
