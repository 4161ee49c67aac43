// The memory of one context: a heap over one long reservation of addresses.
//
// Memory once taken from the system is kept and reused: the heap grows only when no free block is
// large enough, so a step that repeats earlier sizes requests nothing from the system. Free
// neighbours merge, which keeps batches of different sizes from fragmenting it. The choice of
// block depends only on the sequence of calls: the same steps get the same addresses.
//
// Thread-safe: forms of weights that several contexts share are memory of the weights' context,
// whichever context computes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nunchi {

// The address space behind an arena; one implementation per device.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual std::byte* base() const = 0;
  virtual std::size_t reserved() const = 0;
  // Every block's address is a multiple of this power of two.
  virtual std::size_t alignment() const { return 64; }
  // Backs [0, bytes) of the reservation with memory. Called with growing values only; throws Error
  // when the system has no more.
  virtual void grow_to(std::size_t bytes) = 0;
  // Sets every byte of a part of the reservation that is backed.
  virtual void set_bytes(std::byte* begin, std::size_t bytes, unsigned char value) = 0;
};

class Arena {
 public:
  explicit Arena(std::unique_ptr<MemorySource> source);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Uninitialised memory, aligned as the source wants it, owned by the caller until release(). Zero
  // bytes get an address of their own too.
  std::byte* allocate(std::size_t bytes);
  void release(std::byte* address) noexcept;

  // Between the two calls, memory comes from blocks that nothing else uses. end_private() returns
  // them; they stay reserved for captured work (see ContextBase::capture) until hand_back().
  using Held = std::vector<std::pair<std::size_t, std::size_t>>;  // (offset, size)
  void begin_private();
  Held end_private();
  void hand_back(const Held& held);

  // For tests: new memory is filled with NaN, so that a read before the first write shows.
  void poison() { poisoned_ = true; }

  // Exact while no other thread uses the arena.
  std::size_t in_use() const { return in_use_; }
  std::size_t peak() const { return peak_; }
  // Bytes taken from the system, and the number of requests to it.
  std::size_t taken() const { return committed_; }
  std::int64_t system_requests() const { return system_requests_; }

 private:
  void free_block(std::size_t offset, std::size_t size);
  void insert_free(std::size_t offset, std::size_t size);
  void erase_free(std::map<std::size_t, std::size_t>::iterator block);
  void extend(std::size_t end);

  std::mutex mutex_;  // guards all below
  std::unique_ptr<MemorySource> source_;
  std::map<std::size_t, std::size_t> free_by_offset_;           // offset -> size
  std::set<std::pair<std::size_t, std::size_t>> free_by_size_;  // (size, offset)
  std::unordered_map<std::size_t, std::size_t> used_;           // offset -> size
  // The ordinary free blocks, set aside between begin_private() and end_private().
  std::map<std::size_t, std::size_t> others_by_offset_;
  std::set<std::pair<std::size_t, std::size_t>> others_by_size_;
  std::size_t top_ = 0;  // end of the last block
  std::size_t committed_ = 0;
  std::size_t in_use_ = 0;
  std::size_t peak_ = 0;
  std::int64_t system_requests_ = 0;
  bool poisoned_ = false;
};

// Working memory of a kernel, released at the end of the scope.
class ScratchMemory {
 public:
  ScratchMemory(Arena& arena, std::size_t bytes) : arena_(arena), data_(arena.allocate(bytes)) {}
  ~ScratchMemory() { arena_.release(data_); }
  ScratchMemory(const ScratchMemory&) = delete;
  ScratchMemory& operator=(const ScratchMemory&) = delete;

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  Arena& arena_;
  std::byte* data_;
};

}  // namespace nunchi
