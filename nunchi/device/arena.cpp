#include "nunchi/device/arena.h"

#include <algorithm>
#include <utility>

#include "nunchi/base/out_of_memory.h"

namespace nunchi {
namespace {

constexpr std::size_t kGrowthBytes = std::size_t{2} << 20;  // one huge page

constexpr std::size_t round_up(std::size_t n, std::size_t unit) {
  return (n + unit - 1) / unit * unit;
}

}  // namespace

Arena::Arena(std::unique_ptr<MemorySource> source) : source_(std::move(source)) {}
Arena::~Arena() = default;

std::byte* Arena::allocate(std::size_t bytes) {
  if (bytes > source_->reserved()) {
    throw OutOfMemory("out of memory: " + std::to_string(bytes >> 20) +
                      " MiB were requested as one block.");
  }
  const std::lock_guard lock(mutex_);
  const std::size_t alignment = source_->alignment();
  const std::size_t size = std::max(round_up(bytes, alignment), alignment);
  std::size_t offset = 0;
  const auto fit = free_by_size_.lower_bound({size, 0});
  if (fit != free_by_size_.end()) {
    const auto [fit_size, fit_offset] = *fit;
    offset = fit_offset;
    erase_free(free_by_offset_.find(offset));
    if (fit_size > size) insert_free(offset + size, fit_size - size);
  } else {
    // A free block at the end of the heap is extended.
    offset = top_;
    if (!free_by_offset_.empty()) {
      const auto last = std::prev(free_by_offset_.end());
      if (last->first + last->second == top_) offset = last->first;
    }
    extend(offset + size);
    if (offset != top_) erase_free(free_by_offset_.find(offset));
    top_ = offset + size;
  }
  used_.emplace(offset, size);
  in_use_ += size;
  peak_ = std::max(peak_, in_use_);
  if (poisoned_) source_->set_bytes(source_->base() + offset, size, 0xFF);
  return source_->base() + offset;
}

void Arena::release(std::byte* address) noexcept {
  const std::lock_guard lock(mutex_);
  const auto block = used_.find(static_cast<std::size_t>(address - source_->base()));
  if (block == used_.end()) return;
  const auto [offset, size] = *block;
  used_.erase(block);
  in_use_ -= size;
  free_block(offset, size);
}

void Arena::begin_private() {
  const std::lock_guard lock(mutex_);
  public_by_offset_.swap(free_by_offset_);
  public_by_size_.swap(free_by_size_);
}

Arena::Blocks Arena::end_private() {
  const std::lock_guard lock(mutex_);
  Blocks blocks(free_by_offset_.begin(), free_by_offset_.end());
  free_by_offset_ = std::exchange(public_by_offset_, {});
  free_by_size_ = std::exchange(public_by_size_, {});
  return blocks;
}

void Arena::return_blocks(const Blocks& blocks) {
  const std::lock_guard lock(mutex_);
  for (const auto& [offset, size] : blocks) free_block(offset, size);
}

void Arena::free_block(std::size_t offset, std::size_t size) {
  auto next = free_by_offset_.lower_bound(offset);
  if (next != free_by_offset_.end() && offset + size == next->first) {
    size += next->second;
    const auto merged = next++;
    erase_free(merged);
  }
  if (next != free_by_offset_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      offset = previous->first;
      size += previous->second;
      erase_free(previous);
    }
  }
  insert_free(offset, size);
}

void Arena::extend(std::size_t end) {
  if (end <= committed_) return;
  const std::size_t target = round_up(end, kGrowthBytes);
  if (target > source_->reserved()) {
    throw OutOfMemory("out of memory: " + std::to_string(target >> 20) +
                      " MiB are needed in total, but there are only " +
                      std::to_string(source_->reserved() >> 20) + " MiB.");
  }
  source_->grow_to(target);
  committed_ = target;
  ++system_requests_;
}

void Arena::insert_free(std::size_t offset, std::size_t size) {
  free_by_offset_.emplace(offset, size);
  free_by_size_.emplace(size, offset);
}

void Arena::erase_free(std::map<std::size_t, std::size_t>::iterator block) {
  free_by_size_.erase({block->second, block->first});
  free_by_offset_.erase(block);
}

}  // namespace nunchi
