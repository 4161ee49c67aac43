// The instruction set that this compilation of a kernel file is for.
//
// The files of kernels/cpu are compiled once per instruction set, with NUNCHI_ISA set by the build.
// Everything in them that is not compute<Cpu<kIsa>> must be in an unnamed namespace or always be
// inlined: a function shared between versions could contain instructions that a processor lacks.
// For the same reason they call other kernels by compute<TargetOf<…>>, never by run().
#pragma once

#include <type_traits>

#include "nunchi/kernels/run.h"

#if !defined(NUNCHI_ISA)
#error "kernels/cpu files are compiled with NUNCHI_ISA=portable|v2|v3|v4"
#endif

namespace nunchi::kernels {
namespace {

constexpr Isa kIsa = Isa::NUNCHI_ISA;

// The target of another kernel that this version calls.
template <class Args>
using TargetOf = std::conditional_t<kIsaIndependent<Args>, AnyCpu, Cpu<kIsa>>;

}  // namespace
}  // namespace nunchi::kernels
