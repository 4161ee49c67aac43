// How far a context has come with long work, for another thread that shows it.
//
//   const WorkProgress& progress = context.cache<WorkProgress>();
//
// Each context has one; it exists as long as the context. The thread that uses the context writes
// it, and any thread may read it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace nunchi {

class ContextBase;

class WorkProgress {
 public:
  enum class Stage : std::uint8_t {
    none,            // there is nothing to tell
    encoding,        // layers of an encoder over many rows
    reading_prompt,  // layers of a decoder over many rows
    generating       // tokens
  };
  // `done` of `total` layers or tokens; the total of tokens is an upper bound.
  struct State {
    Stage stage = Stage::none;
    std::int64_t done = 0, total = 0;
    double part = 0;  // of the current layer, 0 to 1
  };

  // The progress of the context, for work over at least this many rows. Null for fewer rows, which
  // take only moments.
  static constexpr std::int64_t kManyRows = 4096;
  static WorkProgress* for_rows(ContextBase& context, std::int64_t rows);

  // Begins a layer or a token: no part of it is done.
  void set(const State& state) {
    part_.store(0, std::memory_order_relaxed);
    packed_.store(static_cast<std::uint64_t>(state.stage) << (2 * kBits) |
                      limited(state.done) << kBits | limited(state.total),
                  std::memory_order_relaxed);
  }
  void clear() { set({}); }
  // May be called by several threads of a kernel.
  void set_part(double part);
  State state() const {
    const std::uint64_t packed = packed_.load(std::memory_order_relaxed);
    return {.stage = static_cast<Stage>(packed >> (2 * kBits)),
            .done = static_cast<std::int64_t>(packed >> kBits & kMax),
            .total = static_cast<std::int64_t>(packed & kMax),
            .part = part_.load(std::memory_order_relaxed)};
  }

 private:
  // Stage and counts in one number, so that a reader never sees half of a change.
  static constexpr int kBits = 28;
  static constexpr std::uint64_t kMax = (std::uint64_t{1} << kBits) - 1;
  static std::uint64_t limited(std::int64_t count) {
    return std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(0, count)), kMax);
  }

  std::atomic<std::uint64_t> packed_ = 0;
  std::atomic<float> part_ = 0;
};

}  // namespace nunchi
