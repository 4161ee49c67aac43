// Turns a run-time device and element type into the compile-time types of a kernel.
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "nunchi/base/error.h"
#include "nunchi/device/cuda/context.h"
#include "nunchi/tensor/tensor.h"

namespace nunchi {

// Calls f(context) with the context as its concrete type: Context<Device::cpu>& or
// Context<Device::cuda>&.
template <class F>
decltype(auto) on_device(ContextBase& context, F&& f) {
#if NUNCHI_CUDA
  if (context.device() == Device::cuda) {
    return std::forward<F>(f)(static_cast<Context<Device::cuda>&>(context));
  }
#endif
  return std::forward<F>(f)(static_cast<Context<Device::cpu>&>(context));
}

// Calls f.operator()<T>(context) for the type T that `dtype` names, on the context's device.
template <class F>
void dispatch(ContextBase& base, DType dtype, F&& f) {
  on_device(base, [&](auto& context) {
    // Besides f32, the CPU computes in f64 and CUDA in bf16.
    constexpr bool kCpu = std::is_same_v<std::remove_cvref_t<decltype(context)>, CpuContext>;
    using Other = std::conditional_t<kCpu, double, BFloat16>;
    if (dtype == DType::f32) return f.template operator()<float>(context);
    if (dtype == dtype_of<Other>) return f.template operator()<Other>(context);
    throw Error(std::string("kernels on the ") + (kCpu ? "CPU" : "GPU") + " do not compute in " +
                name_of(dtype) + ".");
  });
}

// The same for the tensor's element type, on its context:
//   dispatch(x, [&]<class T>(auto& ctx) { kernels::run(ctx, kernels::Fill<T>{…}); });
template <class F>
void dispatch(const Tensor& tensor, F&& f) {
  dispatch(tensor.context(), tensor.dtype(), std::forward<F>(f));
}

}  // namespace nunchi
