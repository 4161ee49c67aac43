// A context runs kernels: it owns their threads or stream and their memory.
//
// All mutable state belongs to a context, none is global: the arena, the tape that records
// operations (autograd), the trace that records intermediate values (trace), the random key of the
// step. A program may have several contexts. Each may be used by one thread at a time and must
// outlive its tensors.
#pragma once

#include <any>
#include <functional>
#include <memory>
#include <string>
#include <typeindex>
#include <unordered_map>

#include "nunchi/base/random.h"
#include "nunchi/device/arena.h"
#include "nunchi/device/cpu/busy_cores.h"
#include "nunchi/device/cpu/isa.h"
#include "nunchi/device/device.h"
#include "nunchi/device/host_signal.h"
#include "nunchi/device/mode.h"
#include "nunchi/device/profile.h"

namespace nunchi {

class Tape;
class Trace;

// The part that contexts of all devices share, for code that runs on any device.
class ContextBase {
 public:
  virtual ~ContextBase() = default;
  ContextBase(const ContextBase&) = delete;
  ContextBase& operator=(const ContextBase&) = delete;

  Device device() const { return device_; }
  Precision precision() const { return precision_; }
  // Host threads that a kernel or a loop over data may use.
  virtual int threads() const = 0;
  // The processor or GPU and its settings, for the user.
  virtual std::string description() const = 0;
  // Peak memory of the process (CPU) or of this context (GPU).
  virtual double peak_memory_mib() const = 0;
  Arena& arena() { return arena_; }
  const Arena& arena() const { return arena_; }

  // Mode::evaluating by default; see ModeScope.
  Mode mode() const { return mode_; }
  bool is_training() const { return mode_ == Mode::training; }
  void set_mode(Mode mode) { mode_ = mode; }
  // Operations are recorded here; null: nothing is recorded.
  Tape* tape() const { return tape_; }
  void set_tape(Tape* tape) { tape_ = tape; }
  // Layers write intermediate values here; null: nothing is traced.
  Trace* trace() const { return trace_; }
  void set_trace(Trace* trace) { trace_ = trace; }
  // Kernels report their time here; null: nothing is measured.
  Profile* profile() const { return profile_; }
  void set_profile(Profile* profile) { profile_ = profile; }

  // The key of this step's random numbers, in device memory at a fixed address.
  const RandomKey* device_random_key() const { return device_random_key_; }
  virtual void set_random_key(const RandomKey& key) = 0;
  // The same key for random numbers drawn on the host.
  const RandomKey& host_random_key() const { return host_random_key_; }
  // Returns when all work queued on this context is done.
  virtual void synchronize() {}

  // Captured work, to be replayed with the same memory and the same sizes.
  class CapturedGraph {
   public:
    virtual ~CapturedGraph() = default;
    // Launches the captured kernels.
    virtual void replay() = 0;
  };
  // Whether capture() may be called. True on a GPU, where launching a small kernel costs more than
  // running it, unless a profile or a trace is set.
  virtual bool can_replay() const { return false; }
  // Captures the kernels that `work` launches instead of running them. Memory that `work` allocates
  // belongs to the returned graph; all other memory that it reads or writes must not move. `work`
  // must not synchronize or copy data from the host. Call capture() only if can_replay().
  virtual std::unique_ptr<CapturedGraph> capture(const std::function<void()>& work);

  // Null on a device whose kernels are done when they return: there is nothing to wait for.
  virtual std::unique_ptr<HostSignal> make_host_signal() { return nullptr; }

  // State that a kernel family keeps between calls (GEMM plans), created on first use.
  template <class T>
  T& cache() {
    std::any& slot = caches_[std::type_index(typeid(T))];
    if (!slot.has_value()) slot = std::make_shared<T>();
    return *std::any_cast<std::shared_ptr<T>&>(slot);
  }

 protected:
  ContextBase(Device device, Precision precision, std::unique_ptr<MemorySource> memory)
      : device_(device), precision_(precision), arena_(std::move(memory)) {}
  const RandomKey* device_random_key_ = nullptr;
  RandomKey host_random_key_;
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
  Precision precision = Precision::f32;  // or int8
  bool split_small_work = false;  // for tests: threads share even work that is too small to gain
};

template <>
class Context<Device::cpu> final : public ContextBase {
 public:
  explicit Context(const CpuOptions& options = {});

  int threads() const override { return threads_; }
  std::string description() const override;
  double peak_memory_mib() const override;
  Isa isa() const { return isa_; }
  bool splits_small_work() const { return split_small_work_; }
  BusyCores& busy_cores() const { return busy_cores_; }
  void set_random_key(const RandomKey& key) override { host_random_key_ = key; }

 private:
  int threads_;
  Isa isa_;
  bool split_small_work_;
  mutable BusyCores busy_cores_;
};

using CpuContext = Context<Device::cpu>;

}  // namespace nunchi
