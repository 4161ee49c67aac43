// Which instruction set this compilation of a kernel file is for.
//
// Files in kernels/cpu that define cpu::compute<kIsa, …> are compiled once per instruction set,
// with NUNCHI_ISA set by the build. Everything else in them must be in an unnamed namespace or be
// always inlined: a function shared between versions could carry instructions that a processor
// lacks.
#pragma once

#include "nunchi/device/cpu/isa.h"

#if !defined(NUNCHI_ISA)
#error "kernels/cpu files are compiled with NUNCHI_ISA=portable|v2|v3|v4"
#endif

namespace nunchi::kernels::cpu {
namespace {
constexpr Isa kIsa = Isa::NUNCHI_ISA;
}
}  // namespace nunchi::kernels::cpu
