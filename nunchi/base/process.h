// Figures of this process and this machine, as the system reports them.
#pragma once

#include <string>

namespace nunchi {

// The largest resident memory so far, in MiB; 0 if the system does not report it.
double peak_resident_mib();

// The memory in MiB that this process can use: the machine's, or less if its control group has a
// limit. 0 if the system does not report it.
double memory_mib();
// The part of it that is free now or can be freed; 0 if the system does not report it.
double available_memory_mib();

// The processor's name, or "unknown processor".
std::string processor_name();

}  // namespace nunchi
