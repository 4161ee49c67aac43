// Captures and replays the steps of a search, for devices where launching kernels costs more than
// running them.
//
// All that differs between two steps of the same kind is in device memory, so that captured steps
// can be replayed: kernels read the number of active units there, and the launch only bounds it.
// Graphs are captured for all units of a search, for half of them, a quarter and so on. Each graph
// has several steps. The host launches the next graph while the last one is still running, and
// learns from a HostSignal how many units are active.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <memory>

#include "nunchi/device/context.h"

namespace nunchi {

class StepReplay {
 public:
  // `units`: the maximum number of units of the search.
  StepReplay(ContextBase& context, std::int64_t units);

  bool enabled() const { return context_.can_replay(); }
  // Discards captured steps: memory that they use has moved.
  void forget() { graphs_.clear(); }

  // The steps to run. Two buffers alternate from step to step; a graph is captured for one order of
  // them.
  struct Steps {
    std::function<void(std::int64_t units)> take;  // launches one step of at most `units` units
    std::function<void(std::int64_t steps)> skip;  // swaps buffers as `steps` steps do
    bool swapped = false;                          // whether the buffers are swapped at the start
    std::int64_t kind = 0;          // steps of different kinds launch different kernels
    std::int64_t steps_before = 0;  // steps that the search has already run
    std::int64_t active = 0;        // upper bound of the active units
    std::int64_t max_steps = 0;     // maximum number of steps
  };
  struct Result {
    std::int64_t steps = 0;
    std::int64_t active = 0;  // active units after these steps
  };
  // Runs steps until `max_steps` have run or at most half of the units that the graph was captured
  // for are active. Requires enabled().
  Result run(const Steps& steps);

  // The slots of the signal that steps report to; null if the device has no signal.
  std::int64_t* signal_slots() const { return signal_ != nullptr ? signal_->slots() : nullptr; }
  // Waits for this step of the search, the newest or one of the last few, and returns the number of
  // active units after it. Requires a signal.
  std::int64_t active_after(std::int64_t step) const;

 private:
  struct Key {
    std::int64_t units, steps, kind;
    bool swapped;
    auto operator<=>(const Key&) const = default;
  };
  std::int64_t captured_units(std::int64_t active) const;
  std::int64_t steps_per_graph(std::int64_t active, std::int64_t max_steps) const;
  void replay(const Steps& steps, const Key& key);

  ContextBase& context_;
  std::int64_t units_;
  std::unique_ptr<HostSignal> signal_;  // reports the number of active units; may be null
  std::map<Key, std::unique_ptr<ContextBase::CapturedGraph>> graphs_;
};

}  // namespace nunchi
