// Which slots of a decoder's cache belong to which unit of a search. On the host only.
//
// Slots come in blocks of kSlots. A unit reserves when it enters as many slots as it can ever need,
// so that it never runs out of them later; it takes blocks one by one as it grows, and gives them
// back when it leaves. A new block is used only when no block is free, which keeps the used part of
// the cache compact.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace nunchi::nn {

class SlotBlocks {
 public:
  static constexpr std::int64_t kSlots = 8;
  static constexpr std::int64_t blocks_for(std::int64_t slots) {
    return (slots + kSlots - 1) / kSlots;
  }

  struct Limits {
    std::int64_t units = 0;
    std::int64_t unit_slots = 0;  // of one unit, at most
    std::int64_t slots = 0;       // of all units together, at most
  };
  explicit SlotBlocks(const Limits& limits);

  // False, and nothing changes, when fewer slots are free. The unit has none reserved.
  bool reserve(std::int64_t unit, std::int64_t slots);
  // Takes blocks until the unit has `slots` slots, no more than it reserved. Returns whether the
  // table changed.
  bool take(std::int64_t unit, std::int64_t slots);
  // Gives the unit's blocks and its reservation back.
  void release(std::int64_t unit);

  // Slot n of unit u is table()[u * stride() + n / kSlots] * kSlots + n % kSlots.
  std::span<const std::int32_t> table() const { return table_; }
  std::int64_t stride() const { return stride_; }
  // All taken slots have had indices below this.
  std::int64_t used_slots() const { return ever_taken_ * kSlots; }
  std::int64_t bound() const { return bound_ * kSlots; }
  // Slots that no unit has reserved.
  std::int64_t free_slots() const { return (bound_ - reserved_) * kSlots; }

 private:
  struct Unit {
    std::int64_t reserved = 0, taken = 0;  // blocks
  };
  std::int64_t stride_, bound_, reserved_ = 0;
  std::int64_t ever_taken_ = 0;  // blocks that have been taken at least once
  std::vector<Unit> units_;
  std::vector<std::int32_t> table_;  // [units, stride]
  std::vector<std::int32_t> free_;   // blocks below ever_taken_; the last one is reused first
};

}  // namespace nunchi::nn
