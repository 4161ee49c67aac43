// Configures how OpenMP's threads wait for work.
#pragma once

namespace nunchi::cli {

// By default libgomp's threads spin for milliseconds. When other processes use the cores too, a
// spinning thread takes the core from the thread that it waits for, and small steps get many times
// slower. This lets threads spin briefly and then sleep, unless the environment sets
// OMP_WAIT_POLICY or GOMP_SPINCOUNT.
//
// libgomp reads the environment before main(), so the program sets GOMP_SPINCOUNT and executes
// itself again, once. If that fails, it continues unchanged.
void let_idle_threads_sleep(char** argv);

}  // namespace nunchi::cli
