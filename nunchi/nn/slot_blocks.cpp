#include "nunchi/nn/slot_blocks.h"

#include <string>

#include "nunchi/base/error.h"

namespace nunchi::nn {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

SlotBlocks::SlotBlocks(const Limits& limits)
    : stride_(blocks_for(limits.unit_slots)),
      bound_(blocks_for(limits.slots)),
      units_(index(limits.units)),
      table_(index(limits.units * stride_), 0) {}

bool SlotBlocks::reserve(std::int64_t unit, std::int64_t slots) {
  const std::int64_t blocks = blocks_for(slots);
  if (units_[index(unit)].reserved != 0) {
    throw Error("unit " + std::to_string(unit) + " reserves slots twice (internal error).");
  }
  if (blocks > stride_ || reserved_ + blocks > bound_) return false;
  units_[index(unit)].reserved = blocks;
  reserved_ += blocks;
  return true;
}

bool SlotBlocks::take(std::int64_t unit, std::int64_t slots) {
  Unit& u = units_[index(unit)];
  const std::int64_t blocks = blocks_for(slots);
  if (blocks > u.reserved) {
    throw Error("unit " + std::to_string(unit) + " takes " + std::to_string(slots) +
                " slots but reserved " + std::to_string(u.reserved * kSlots) +
                " (internal error).");
  }
  if (blocks <= u.taken) return false;
  while (u.taken < blocks) {
    std::int32_t block = static_cast<std::int32_t>(ever_taken_);
    if (free_.empty()) {
      ++ever_taken_;
    } else {
      block = free_.back();
      free_.pop_back();
    }
    table_[index(unit * stride_ + u.taken++)] = block;
  }
  return true;
}

void SlotBlocks::release(std::int64_t unit) {
  Unit& u = units_[index(unit)];
  // In reverse order, so that the unit's first block is the next one to be reused.
  for (std::int64_t i = u.taken; i-- > 0;) free_.push_back(table_[index(unit * stride_ + i)]);
  reserved_ -= u.reserved;
  u = {};
}

}  // namespace nunchi::nn
