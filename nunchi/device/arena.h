// The memory of one context: a heap in one large reservation of address space.
//
// The heap keeps and reuses its memory. It grows only when no free block is large enough, so a step
// that repeats earlier sizes requests nothing from the system. Free neighbours merge, which limits
// fragmentation by batches of different sizes. The choice of block depends only on the sequence of
// calls: the same steps get the same addresses.
//
// Thread-safe, because contexts can share weights: the cached forms of a weight are allocated in
// the weight's context, whichever context computes them.
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
  virtual std::size_t reserved() const = 0;  // bytes from base()
  // Every block's address is a multiple of this power of two.
  virtual std::size_t alignment() const { return 64; }
  // Backs bytes [0, bytes) of the reservation with memory. Called with growing values only; throws
  // Error if the system has no memory left.
  virtual void grow_to(std::size_t bytes) = 0;
  // Sets every byte of a range that is backed.
  virtual void set_bytes(std::byte* begin, std::size_t bytes, unsigned char value) = 0;
};

class Arena {
 public:
  explicit Arena(std::unique_ptr<MemorySource> source);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Uninitialised memory with the source's alignment, owned by the caller until release(). Every
  // block in use has its own address, even one of zero bytes.
  std::byte* allocate(std::size_t bytes);
  void release(std::byte* address) noexcept;

  // Between begin_private() and end_private(), memory comes from blocks that nothing else uses.
  // end_private() returns those that are free again; they stay reserved for captured work
  // (see ContextBase::capture) until return_blocks().
  using Blocks = std::vector<std::pair<std::size_t, std::size_t>>;  // (offset, size)
  void begin_private();
  Blocks end_private();
  void return_blocks(const Blocks& blocks);

  // For tests: fills new memory with NaN, so that a read before the first write shows.
  void poison() { poisoned_ = true; }

  // Bytes of the blocks in use now, and their maximum so far. Exact while no other thread uses the
  // arena.
  std::size_t in_use() const { return in_use_; }
  std::size_t peak() const { return peak_; }
  // Bytes obtained from the system, and the number of requests to it.
  std::size_t committed() const { return committed_; }
  std::int64_t system_requests() const { return system_requests_; }

 private:
  void free_block(std::size_t offset, std::size_t size);
  void insert_free(std::size_t offset, std::size_t size);
  void erase_free(std::map<std::size_t, std::size_t>::iterator block);
  void extend(std::size_t end);

  std::mutex mutex_;  // guards all members below
  std::unique_ptr<MemorySource> source_;
  std::map<std::size_t, std::size_t> free_by_offset_;           // offset -> size
  std::set<std::pair<std::size_t, std::size_t>> free_by_size_;  // (size, offset)
  std::unordered_map<std::size_t, std::size_t> used_;           // offset -> size
  // The free blocks of all other code, set aside between begin_private() and end_private().
  std::map<std::size_t, std::size_t> public_by_offset_;
  std::set<std::pair<std::size_t, std::size_t>> public_by_size_;
  std::size_t top_ = 0;  // end of the last block
  std::size_t committed_ = 0;
  std::size_t in_use_ = 0;
  std::size_t peak_ = 0;
  std::int64_t system_requests_ = 0;
  bool poisoned_ = false;
};

// Scratch memory of a kernel, released at the end of the scope.
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
