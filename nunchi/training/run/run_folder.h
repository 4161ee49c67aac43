// The folder of a run, locked by one process at a time.
//
//   run.json               {"format": 1}: marks a run, with the version of its format
//   lock                   locked (flock) by the process that trains
//   checkpoints/step-N/    see checkpoint.h
//   log.jsonl, events/     see metrics_log.h
//   failed/step-N.json     batches whose loss or gradients were not finite
//   cache/                 prepared data; stays when a run is overwritten
//   config.json, model.safetensors, *.spm, generation_config.json
//                          the model: at the end the folder is itself a model folder
//
// Before start() nothing of an earlier run is changed, so that errors leave it intact. A run
// without a checkpoint and without a model does not count: the next run takes its folder. A folder
// with other files that is not a run's is refused: a run might overwrite them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace nunchi {

class RunFolder {
 public:
  enum class Begin : std::uint8_t {
    fresh,      // a new run; the folder holds none
    resume,     // continues the folder's run
    overwrite,  // a new run; the files of an earlier one are removed, nothing else
  };

  // Creates the folder if it is missing, locks it and removes temporary files of killed writers.
  // Throws UsageError when `begin` does not fit the folder's contents, and Error when another
  // process holds the lock, when the folder was written by a later version, or when it cannot be
  // written. `own` names entries that the caller created before the run.
  RunFolder(const std::filesystem::path& path, Begin begin, std::span<const std::string> own = {});
  // Releases the lock. Removes what was created for a run that never started, except prepared data.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  // From here on the folder is this run's. Unless it is resumed, an earlier run is removed.
  void start();
  // Throws UsageError when start() would remove the file `input`; `key` is the option that named
  // it.
  void check_stays(const std::filesystem::path& input, const std::string& key) const;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path failed() const { return path_ / "failed"; }
  // Where a resumed run continues; empty if there is none and the run starts at the first step.
  std::filesystem::path last_checkpoint() const;

  // Throws what the constructor would, except for a lock that is held; changes nothing.
  static void check(const std::filesystem::path& path, Begin begin,
                    std::span<const std::string> own = {});
  // The name of an entry of the folder that is neither among `own` nor left by a run that was
  // killed before start(). Empty: there is none, or no such folder.
  static std::string foreign_entry(const std::filesystem::path& path,
                                   std::span<const std::string> own = {});
  // Whether the folder has a run with a checkpoint or a model.
  static bool holds_run(const std::filesystem::path& path);

 private:
  void make_folder();
  void take_lock();
  void release();
  std::vector<std::filesystem::path> files_to_remove() const;

  std::filesystem::path path_;
  Begin begin_;
  bool started_ = false;
  // The lock and the folders that this object created, inner ones first.
  std::vector<std::filesystem::path> made_;
  int lock_ = -1;
};

}  // namespace nunchi
