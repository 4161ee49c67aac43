// What the system knows about this process.
#pragma once

#include <string>

namespace nunchi {

// The most memory that was resident at any time, in MiB; 0 where the system does not tell.
double peak_resident_mib();

// The machine's memory in MiB; 0 where the system does not tell.
double memory_mib();

// The processor's name as the system gives it.
std::string processor_name();

}  // namespace nunchi
