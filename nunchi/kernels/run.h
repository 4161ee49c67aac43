// How kernels are called: a kernel is a struct of its arguments, run() runs it.
//
//   kernels::run(ctx, kernels::Fill<float>{.count = n, .value = 0, .out = p});
//
// The context's type picks the device when the call is compiled; on the CPU the context's
// instruction set picks among the versions of the same source (kernels/cpu/isa_version.h).
//
// Beside its struct a kernel's header declares
//
//   template <class Target, class T>
//   void compute(ContextOf<Target>& ctx, const Fill<T>& p);
//
// and kernels/cpu and kernels/cuda define it and instantiate it for their targets and types:
//
//   template void compute<Cpu<kIsa>>(CpuContext&, const Fill<float>&);
//   template void compute<Cuda>(CudaContext&, const Fill<float>&);
#pragma once

#include <chrono>
#include <type_traits>

#include "nunchi/device/context.h"
#include "nunchi/device/cuda/context.h"

namespace nunchi::kernels {

// A target names the processor that a kernel is compiled for and the type of context it runs on.
template <Isa I>
struct Cpu {  // a CPU with instruction set I
  using Context = CpuContext;
};
struct AnyCpu {  // any CPU; for kernels whose arguments are marked kIsaIndependent
  using Context = CpuContext;
};
#if NUNCHI_CUDA
struct Cuda {
  using Context = CudaContext;
};
#endif

template <class Target>
using ContextOf = typename Target::Context;

// A kernel marked `static constexpr bool kIsComposite = true` runs other kernels, and a profile
// lists those instead of it.
template <class Args>
inline constexpr bool kIsComposite = requires {
  requires Args::kIsComposite;
};

// A kernel marked `static constexpr bool kIsaIndependent = true` is compiled once for all
// instruction sets: it leaves its work to a library or to other kernels, or has no loops that
// vector code would speed up. Its source file is in kernels/cpu/isa_independent. A mark that
// disagrees with the folder does not link.
template <class Args>
inline constexpr bool kIsaIndependent = requires {
  requires Args::kIsaIndependent;
};

// f64 serves gradient checks only. Its kernels are compiled for one instruction set, which every
// processor has, and run on contexts of all instruction sets.
inline constexpr Isa kF64Isa = Isa::portable;
template <class Args>
inline constexpr bool kIsF64 = false;
template <template <class...> class Kernel, class... Elements>
inline constexpr bool kIsF64<Kernel<Elements...>> = (std::is_same_v<Elements, double> || ...);

// Runs `args` as run() does but without a profile entry. For kernels that call other kernels
// and are themselves listed in a profile.
template <class Args>
void run_unprofiled(CpuContext& ctx, const Args& args) {
  if constexpr (kIsaIndependent<Args>) {
    compute<AnyCpu>(ctx, args);
  } else if constexpr (kIsF64<Args>) {
    compute<Cpu<kF64Isa>>(ctx, args);
  } else {
    switch (ctx.isa()) {
#if defined(__x86_64__)
      case Isa::v4:
        return compute<Cpu<Isa::v4>>(ctx, args);
      case Isa::v3:
        return compute<Cpu<Isa::v3>>(ctx, args);
      case Isa::v2:
        return compute<Cpu<Isa::v2>>(ctx, args);
#endif
      default:
        return compute<Cpu<Isa::portable>>(ctx, args);
    }
  }
}

// Runs `args` on the CPU and returns when it has finished.
template <class Args>
void run(CpuContext& ctx, const Args& args) {
  Profile* profile = ctx.profile();
  if (profile == nullptr || kIsComposite<Args>) return run_unprofiled(ctx, args);
  if (!profile->timed()) {
    run_unprofiled(ctx, args);
    return profile->add(args.name(), 0, args.work());
  }
  const auto begin = std::chrono::steady_clock::now();
  run_unprofiled(ctx, args);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  profile->add(args.name(), took.count(), args.work());
}

#if NUNCHI_CUDA
template <class Args>
void run_unprofiled(CudaContext& ctx, const Args& args) {
  compute<Cuda>(ctx, args);
}

// Launches `args` in the context's stream and returns; work that follows in the same context sees
// its results.
template <class Args>
void run(CudaContext& ctx, const Args& args) {
  Profile* profile = ctx.profile();
  if (profile == nullptr || kIsComposite<Args>) return run_unprofiled(ctx, args);
  if (profile->timed()) ctx.start_clock();
  run_unprofiled(ctx, args);
  profile->add(args.name(), profile->timed() ? ctx.stop_clock() : 0, args.work());
}
#endif

}  // namespace nunchi::kernels
