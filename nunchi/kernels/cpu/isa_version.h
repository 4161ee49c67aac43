// The instruction set that a kernel file is being compiled for.
//
// The files of kernels/cpu are compiled once per instruction set, with NUNCHI_ISA set by the build.
// Everything in them that is not compute<Cpu<kIsa>> must be in an unnamed namespace or always be
// inlined: the linker keeps one copy of a shared function, which could contain instructions that
// the processor lacks. For the same reason they call other kernels with compute<TargetOf<…>>, never
// with run().
//
// Kernels for f64 are instantiated in the version with NUNCHI_F64_VERSION=1 only.
#pragma once

#include <type_traits>

#include "nunchi/kernels/run.h"

#if !defined(NUNCHI_ISA)
#error "kernels/cpu files are compiled with NUNCHI_ISA=portable|v2|v3|v4"
#endif

namespace nunchi::kernels {
namespace {

constexpr Isa kIsa = Isa::NUNCHI_ISA;
static_assert(NUNCHI_F64_VERSION == (kIsa == kF64Isa));

// The target with which a kernel of this version calls the kernel of `Args`.
template <class Args>
using TargetOf = std::conditional_t<kIsaIndependent<Args>, AnyCpu, Cpu<kIsa>>;

}  // namespace
}  // namespace nunchi::kernels
