// A context is what kernels run on: threads or a stream, and the memory they work in.
//
// Everything that changes while a program runs hangs on a context, nothing on globals: the arena,
// the tape that records (autograd), the trace that looks (trace), the random key of the step.
// Programs may have several contexts; each is used by one thread at a time and outlives its
// tensors.
#pragma once

#include <any>
#include <functional>
#include <memory>
#include <string>
#include <typeindex>
#include <unordered_map>

#include "nunchi/base/random.h"
#include "nunchi/device/arena.h"
#include "nunchi/device/cpu/isa.h"
#include "nunchi/device/device.h"
#include "nunchi/device/mode.h"
#include "nunchi/device/profile.h"

namespace nunchi {

class Tape;
class Trace;

// What contexts of all devices share; code that does not care where it runs takes this one.
class ContextBase {
 public:
  virtual ~ContextBase() = default;
  ContextBase(const ContextBase&) = delete;
  ContextBase& operator=(const ContextBase&) = delete;

  Device device() const { return device_; }
  Precision precision() const { return precision_; }
  // Threads of the host that work on the same job may use.
  virtual int threads() const = 0;
  // For people: the processor and how it is used.
  virtual std::string description() const = 0;
  // The most memory that was in use: of the process, or of the GPU.
  virtual double peak_memory_mib() const = 0;
  Arena& arena() { return arena_; }
  const Arena& arena() const { return arena_; }

  // Evaluating unless a ModeScope says training.
  Mode mode() const { return mode_; }
  bool is_training() const { return mode_ == Mode::training; }
  void set_mode(Mode mode) { mode_ = mode; }
  // Operations are recorded here; null: nothing is recorded.
  Tape* tape() const { return tape_; }
  void set_tape(Tape* tape) { tape_ = tape; }
  // Layers write their taps here; null: nobody is looking.
  Trace* trace() const { return trace_; }
  void set_trace(Trace* trace) { trace_ = trace; }
  // Kernels report their time here; null: nobody measures.
  Profile* profile() const { return profile_; }
  void set_profile(Profile* profile) { profile_ = profile; }

  // The key of this step's draws. The address is in the device's memory and stays the same.
  const RandomKey* random() const { return random_; }
  virtual void set_random(const RandomKey& key) = 0;
  // The same for what the host draws.
  const RandomKey& random_key() const { return key_; }
  // Returns when all that was started on this context is done.
  virtual void synchronize() {}

  // Work that can be started again and again, with the same memory and the same sizes.
  class Replay {
   public:
    virtual ~Replay() = default;
    virtual void start() = 0;
  };
  // Whether this device gains by it: starting work costs it more than the work.
  virtual bool replays() const { return false; }
  // Notes what `work` would start, instead of starting it. The memory that it works in is its own
  // while the result lives; what it reads and writes beside that must stay where it is. Nothing in
  // it may wait for the device or read from the host. Only for devices that replay.
  virtual std::unique_ptr<Replay> capture(const std::function<void()>& work);

  // Numbers that kernels leave for the host, which reads them while the device goes on. A letter is
  // (key << 32 | number); box key % kBoxes is its place.
  class Mailbox {
   public:
    static constexpr std::int64_t kBoxes = 8;
    virtual ~Mailbox() = default;
    // [kBoxes] for kernels to write to.
    virtual std::int64_t* boxes() = 0;
    // Forgets all letters; none may be on its way.
    virtual void clear() = 0;
    // The number of the letter with this key; waits for it. Throws Error where the device failed.
    virtual std::int32_t wait(std::int32_t key) = 0;
  };
  // Null where the host has nothing to wait for: kernels are done when they return.
  virtual std::unique_ptr<Mailbox> make_mailbox() { return nullptr; }

  // What a kernel family keeps between calls (plans of products), made on first use.
  template <class T>
  T& cache() {
    std::any& slot = caches_[std::type_index(typeid(T))];
    if (!slot.has_value()) slot = std::make_shared<T>();
    return *std::any_cast<std::shared_ptr<T>&>(slot);
  }

 protected:
  ContextBase(Device device, Precision precision, std::unique_ptr<MemorySource> memory)
      : device_(device), precision_(precision), arena_(std::move(memory)) {}
  const RandomKey* random_ = nullptr;
  RandomKey key_;
  void drop_caches() { caches_.clear(); }

 private:
  Device device_;
  Precision precision_;
  Arena arena_;
  Mode mode_ = Mode::evaluating;
  Tape* tape_ = nullptr;
  Trace* trace_ = nullptr;
  Profile* profile_ = nullptr;
  std::unordered_map<std::type_index, std::any> caches_;
};

template <Device D>
class Context;

// Cores that this process may use.
int usable_cores();

struct CpuOptions {
  int threads = 0;  // 0: one for each core that this process may use
  Isa isa = chosen_isa();
};

template <>
class Context<Device::cpu> final : public ContextBase {
 public:
  explicit Context(const CpuOptions& options = {});

  int threads() const override { return threads_; }
  std::string description() const override;
  double peak_memory_mib() const override;
  Isa isa() const { return isa_; }
  void set_random(const RandomKey& key) override { key_ = key; }

 private:
  int threads_;
  Isa isa_;
};

using CpuContext = Context<Device::cpu>;

}  // namespace nunchi
