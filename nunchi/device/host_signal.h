// One number per step that the device reports to the host while it continues to run.
#pragma once

#include <cstdint>

namespace nunchi {

// Kernels write messages (step, value), the host polls for them. The message of step s is in slot
// s % kSlots, so the host may lag behind by at most kSlots steps. A message does not make the
// step's other results visible to the host: read those with copies in the stream's order.
class HostSignal {
 public:
  static constexpr std::int64_t kSlots = 8;

  virtual ~HostSignal() = default;
  // [kSlots] for kernels to write to.
  virtual std::int64_t* slots() = 0;
  // Drops all messages. No step that sends one may be in flight.
  virtual void clear() = 0;
  // Waits for the message of `step` and returns its value. Throws Error if the device failed or
  // became idle without sending it.
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
