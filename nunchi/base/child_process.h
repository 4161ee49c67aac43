// Runs a function in a child process, so that it can be ended at any moment.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>

namespace nunchi {

struct ChildOptions {
  const std::atomic<bool>* stop = nullptr;         // true: end the child and throw Interrupted
  std::function<void(std::string_view line)> log;  // receives the lines that it writes to stderr
  std::function<void()> tick;                      // called about ten times a second
};

// Forks, runs `work` in the child and returns its result. Errors of `work` are thrown here; an
// Error also reports a child that was killed, for example because memory ran out. If a callback
// throws, the child is ended and the exception passed on.
//
// The child is a copy of this process with the calling thread only. `work` may start threads, but
// must not use OpenMP, a GPU, or a lock that another thread may hold; it changes no memory of this
// process. The child blocks SIGINT, SIGTERM and SIGHUP, runs no exit handlers, and is killed if the
// calling thread ends.
std::string run_in_child(const std::function<std::string()>& work, const ChildOptions& options);

}  // namespace nunchi
