// The folder of a run, held by one process at a time.
//
//   run.json               {"format": 1}: this is a run, and how its files are to be read
//   lock                   locked (flock) by the process that trains
//   checkpoints/step-N/    see checkpoint.h
//   log.jsonl, events/     see metrics_log.h
//   failed/step-N.json     batches whose loss or gradients were not finite
//   cache/                 prepared data; stays when a run is overwritten
//   config.json, model.safetensors, *.spm, generation_config.json
//                          the model: at the end the folder is itself a model folder
#pragma once

#include <cstdint>
#include <filesystem>

namespace nunchi {

class RunFolder {
 public:
  enum class Begin : std::uint8_t {
    fresh,      // where no run and no model is
    resume,     // where a run is
    overwrite,  // a fresh run; what an earlier one left is removed, nothing else
  };

  // Makes the folder if need be, locks it and clears away what killed writers left. Throws
  // UsageError when `begin` does not fit what is there, and Error when another process holds the
  // folder, when it was written by a later version, or when it cannot be written.
  RunFolder(const std::filesystem::path& path, Begin begin);
  // Lets go of the lock.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path failed() const { return path_ / "failed"; }

  // What the constructor would refuse, without touching anything; a lock that is held excepted.
  static void check(const std::filesystem::path& path, Begin begin);

 private:
  void take_lock();

  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace nunchi
