// How the steps of a search are captured and replayed on a device where launching kernels costs
// more than running them.
//
// All that differs between two steps of the same kind is in device memory, so that captured steps
// can be replayed: the number of active units is read there and only bounded by the launch. Steps
// are captured for all units of a search, for half of them, a quarter and so on. Each replay takes
// several steps at once; the host launches the next one while the last is still running, and learns
// by a HostSignal how many units are active.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <memory>

#include "nunchi/device/context.h"

namespace nunchi {

class StepReplay {
 public:
  // `units`: the largest number of units of the search.
  StepReplay(ContextBase& context, std::int64_t units);

  bool enabled() const { return context_.replays(); }
  // Captured steps must not be replayed any more, because memory that they use has moved.
  void forget() { graphs_.clear(); }

  // What a step needs to be told, and how the buffers that alternate from step to step are kept
  // right when steps are replayed.
  struct Steps {
    std::function<void(std::int64_t units)> take;  // launches one step of at most `units` units
    std::function<void(std::int64_t steps)> skip;  // swaps buffers as `steps` steps do
    bool swapped = false;                          // which buffers the first step reads
    std::int64_t kind = 0;    // steps of different kinds launch different kernels
    std::int64_t taken = 0;   // steps of the search before these
    std::int64_t active = 0;  // units, at most
    std::int64_t most = 0;    // steps
  };
  struct Taken {
    std::int64_t steps = 0;
    std::int64_t active = 0;  // units after them
  };
  // Takes steps until `most` were taken or at most half of the units that the graph was captured
  // for are active. Only where enabled().
  Taken run(const Steps& steps);

  // The slots of the signal that steps report to; null where the device has none.
  std::int64_t* signal_slots() const { return signal_ != nullptr ? signal_->slots() : nullptr; }
  // Waits for this step of the search, the newest or one of the last few. Only with a signal.
  std::int64_t active_after(std::int64_t step) const;

 private:
  struct Key {
    std::int64_t units, steps, kind;
    bool swapped;
    auto operator<=>(const Key&) const = default;
  };
  std::int64_t captured_units(std::int64_t active) const;
  std::int64_t steps_at_once(std::int64_t active, std::int64_t most) const;
  void replay(const Steps& steps, const Key& key);

  ContextBase& context_;
  std::int64_t units_;
  std::unique_ptr<HostSignal> signal_;  // the number of active units; may be null
  std::map<Key, std::unique_ptr<ContextBase::Replay>> graphs_;
};

}  // namespace nunchi
