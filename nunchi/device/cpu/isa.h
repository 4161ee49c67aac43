// The instruction sets the CPU kernels are compiled for; one is chosen when a context is made.
#pragma once

#include <cstdint>
#include <string_view>

namespace nunchi {

// x86-64's levels: v2 is SSE4.2, v3 AVX2 with FMA, v4 AVX-512. `portable` assumes none of them.
enum class Isa : std::uint8_t { portable, v2, v3, v4 };

const char* name_of(Isa isa);

// The best set that this processor has and this build contains.
Isa detected_isa();

// The set that the environment variable NUNCHI_ISA names (portable, v2, v3 or v4), or
// detected_isa() if it is unset. Throws UsageError for an unknown name or for a set that the
// processor lacks.
Isa chosen_isa();

}  // namespace nunchi
