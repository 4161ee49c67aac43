#include "nunchi/decoding/step_replay.h"

#include <algorithm>

namespace nunchi {

StepReplay::StepReplay(ContextBase& context, std::int64_t units)
    : context_(context), units_(units), signal_(context.make_host_signal()) {}

std::int64_t StepReplay::active_after(std::int64_t step) const {
  return signal_->wait(static_cast<std::int32_t>(step));
}

// Halving keeps the number of graphs small, regardless of the order in which units finish.
std::int64_t StepReplay::captured_units(std::int64_t active) const {
  std::int64_t size = units_;
  while (size > 1 && (size + 1) / 2 >= active) size = (size + 1) / 2;
  return size;
}

// A unit that finishes waits for the remaining steps of its graph. While all units are active, few
// are likely to finish soon, so that graphs can be longer.
std::int64_t StepReplay::steps_per_graph(std::int64_t active, std::int64_t max_steps) const {
  constexpr std::int64_t kManyUnits = 8, kManySteps = 8;
  // The host waits for one step of a graph only and may lag behind by at most kSlots steps.
  static_assert(kManySteps <= HostSignal::kSlots);
  if (max_steps == 1) return 1;
  return active == units_ && active >= kManyUnits && max_steps >= kManySteps ? kManySteps : 2;
}

void StepReplay::replay(const Steps& steps, const Key& key) {
  std::unique_ptr<ContextBase::CapturedGraph>& graph = graphs_[key];
  if (graph == nullptr) {
    graph = context_.capture([&] {
      for (std::int64_t i = 0; i < key.steps; ++i) steps.take(key.units);
    });
    steps.skip(key.steps);  // capturing swapped the buffers without running steps: undo it
  }
  graph->replay();
  steps.skip(key.steps);
}

StepReplay::Result StepReplay::run(const Steps& steps) {
  Key key{.units = captured_units(steps.active),
          .steps = 0,
          .kind = steps.kind,
          .swapped = steps.swapped};
  const std::int64_t half = key.units / 2;
  Result result{.active = steps.active};
  while (result.steps < steps.max_steps && result.active > half) {
    const std::int64_t left = steps.max_steps - result.steps;
    key.steps = steps_per_graph(result.active, left);
    if (key.steps == 1 && steps.max_steps > 1) {
      steps.take(key.units);  // a single step at the end is not worth a graph
    } else {
      replay(steps, key);
    }
    result.steps += key.steps;
    // Wait for the last step but one: the last keeps the device busy until the next graph starts.
    if (result.steps < steps.max_steps)
      result.active = active_after(steps.steps_before + result.steps - 1);
  }
  result.active = active_after(steps.steps_before + result.steps);
  return result;
}

}  // namespace nunchi
