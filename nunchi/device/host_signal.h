// One number per step that the device reports to the host while it continues to run.
#pragma once

#include <cstdint>

namespace nunchi {

// Kernels write messages, the host polls for them. The message of step s is in slot s % kSlots, so
// the host may lag behind by at most kSlots steps. A message says nothing about other memory: read
// whatever else the step wrote in the stream's order.
class HostSignal {
 public:
  static constexpr std::int64_t kSlots = 8;

  virtual ~HostSignal() = default;
  // [kSlots] for kernels to write to.
  virtual std::int64_t* slots() = 0;
  // Forgets all messages. None may be under way.
  virtual void clear() = 0;
  // Waits for the message of `step` and returns its value. Throws Error where the device failed or
  // ran out of work without sending it.
  virtual std::int32_t wait(std::int32_t step) = 0;

  static constexpr std::int64_t message_of(std::int64_t step, std::int64_t value) {
    return step << 32 | value;
  }
  static constexpr std::int64_t step_of(std::int64_t message) { return message >> 32; }
  static constexpr std::int32_t value_of(std::int64_t message) {
    return static_cast<std::int32_t>(message);
  }
};

}  // namespace nunchi
