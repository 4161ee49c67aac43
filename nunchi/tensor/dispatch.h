// From what is known at run time (device, element type) to what a kernel knows when it is compiled.
#pragma once

#include <string>
#include <utility>

#include "nunchi/base/error.h"
#include "nunchi/tensor/tensor.h"

namespace nunchi {

// Calls f(context) with the context as what it is: Context<Device::cpu>& or Context<Device::cuda>&.
template <class F>
decltype(auto) on_device(ContextBase& context, F&& f) {
  if (context.device() != Device::cpu) throw Error("this build of nunchi has no CUDA.");
  return std::forward<F>(f)(static_cast<Context<Device::cpu>&>(context));
}

// Calls f.operator()<T>(context) for the type that `tensor` computes in, on its device:
//   dispatch(x, [&]<class T>(auto& ctx) { kernels::run(ctx, kernels::Fill<T>{…}); });
template <class F>
void dispatch(const Tensor& tensor, F&& f) {
  on_device(tensor.context(), [&](auto& context) {
    switch (tensor.dtype()) {
      case DType::f32:
        return f.template operator()<float>(context);
      case DType::f64:
        return f.template operator()<double>(context);
      default:
        throw Error(std::string("no kernel computes in ") + name_of(tensor.dtype()) + ".");
    }
  });
}

}  // namespace nunchi
