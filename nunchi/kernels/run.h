// How kernels are called: a kernel is a struct of its arguments, run() executes it.
//
//   kernels::run(ctx, kernels::Fill<float>{.count = n, .value = 0, .out = p});
//
// The context's type picks the device when the call is compiled; on the CPU the context's
// instruction set picks among the versions of the same source (kernels/cpu/isa_version.h).
#pragma once

#include <chrono>

#include "nunchi/device/context.h"
#include "nunchi/device/cuda/context.h"

namespace nunchi::kernels {

// Kernels made of others: a profile gets their parts, which are run for themselves.
template <class Args>
inline constexpr bool kOfParts = false;

namespace cpu {

// Kernels that hand their work to a library have one version only.
template <class Args>
inline constexpr bool kOneVersion = false;

// Defined in kernels/cpu, once per instruction set.
template <Isa I, class Args>
void compute(CpuContext& ctx, const Args& args);

template <class Args>
void compute_best(CpuContext& ctx, const Args& args) {
  if constexpr (kOneVersion<Args>) {
    compute<Isa::portable>(ctx, args);
  } else {
    switch (ctx.isa()) {
#if defined(__x86_64__)
      case Isa::v4:
        return compute<Isa::v4>(ctx, args);
      case Isa::v3:
        return compute<Isa::v3>(ctx, args);
      case Isa::v2:
        return compute<Isa::v2>(ctx, args);
#endif
      default:
        return compute<Isa::portable>(ctx, args);
    }
  }
}

}  // namespace cpu

// Runs `args` on the CPU and returns when it is done.
template <class Args>
void run(CpuContext& ctx, const Args& args) {
  Profile* profile = ctx.profile();
  if (profile == nullptr || kOfParts<Args>) return cpu::compute_best(ctx, args);
  if (!profile->timed()) {
    cpu::compute_best(ctx, args);
    return profile->add(args.name(), 0, args.work());
  }
  const auto begin = std::chrono::steady_clock::now();
  cpu::compute_best(ctx, args);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  profile->add(args.name(), took.count(), args.work());
}

#if NUNCHI_CUDA
namespace cuda {
// Defined in kernels/cuda: puts `args` into the context's stream and returns.
template <class Args>
void compute(CudaContext& ctx, const Args& args);
}  // namespace cuda

// Starts `args` on the GPU; what follows in the same context sees its results.
template <class Args>
void run(CudaContext& ctx, const Args& args) {
  Profile* profile = ctx.profile();
  if (profile == nullptr || kOfParts<Args>) return cuda::compute(ctx, args);
  if (profile->timed()) ctx.start_clock();
  cuda::compute(ctx, args);
  profile->add(args.name(), profile->timed() ? ctx.stop_clock() : 0, args.work());
}
#endif

}  // namespace nunchi::kernels
