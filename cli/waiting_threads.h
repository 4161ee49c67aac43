// How the threads of OpenMP wait for their next work.
#pragma once

namespace nunchi::cli {

// libgomp lets them spin for milliseconds. Where others use the cores too, a thread that spins
// takes the core from the thread that it waits for, and small steps get many times slower. So they
// spin shortly and then sleep, unless the environment says otherwise (OMP_WAIT_POLICY,
// GOMP_SPINCOUNT).
//
// libgomp reads the environment before main(): the program puts the setting there and starts itself
// again, once. Where that fails, it goes on as it is.
void make_threads_wait_quietly(char** argv);

}  // namespace nunchi::cli
