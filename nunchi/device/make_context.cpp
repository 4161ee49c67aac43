#include "nunchi/device/make_context.h"

#include <charconv>

#include "nunchi/base/error.h"
#include "nunchi/device/cuda/context.h"

namespace nunchi {
namespace {

Precision precision_of(const ContextOptions& options, Precision default_precision) {
  if (options.precision.empty()) return default_precision;
  if (options.precision == "f32") return Precision::f32;
  if (options.precision == "bf16") return Precision::bf16;
  if (options.precision == "int8") return Precision::int8;
  throw UsageError("unknown precision '" + options.precision + "'; use f32, bf16 or int8.");
}

// The number in cuda:N.
int gpu_number(const std::string& device) {
  const std::string number = device.substr(device.find(':') + 1);
  int value = -1;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != number.data() + number.size() || value < 0) {
    throw UsageError("the device '" + device + "' has no number after the colon; write cuda:0.");
  }
  return value;
}

std::unique_ptr<ContextBase> make_cuda_context(const ContextOptions& options) {
  const int number = options.device == "cuda" ? 0 : gpu_number(options.device);
  const Precision precision = precision_of(options, Precision::bf16);
  if (precision == Precision::int8) {
    throw UsageError("a GPU computes in bf16 or f32; int8 needs --device cpu.");
  }
#if NUNCHI_CUDA
  return std::make_unique<CudaContext>(CudaOptions{
      .device = number, .precision = precision, .deterministic = options.deterministic});
#else
  throw Error(
      "this build of nunchi has no CUDA support, so --device cuda:" + std::to_string(number) +
      " is not available. Rebuild nunchi on a machine with nvcc, or use --device cpu.");
#endif
}

}  // namespace

std::unique_ptr<ContextBase> make_context(const ContextOptions& options) {
  if (options.device == "cuda" || options.device.starts_with("cuda:")) {
    return make_cuda_context(options);
  }
  if (options.device != "cpu") {
    throw UsageError("unknown device '" + options.device + "'; use cpu, cuda or cuda:N.");
  }
  const Precision precision = precision_of(options, Precision::f32);
  if (precision == Precision::bf16) {
    throw UsageError("the CPU computes in f32 or int8; bf16 needs --device cuda.");
  }
  return std::make_unique<CpuContext>(
      CpuOptions{.threads = options.threads, .precision = precision});
}

}  // namespace nunchi
