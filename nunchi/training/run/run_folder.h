// The folder of a run, locked by one process at a time.
//
//   run.json               {"format": 1, …}: marks the folder of a run; has the format's version
//                          and, at the end, which weights became the model (see model_choice.h)
//   lock                   locked (flock) by the process that trains
//   checkpoints/step-N/    see checkpoint.h
//   log.jsonl, events.out.tfevents.N    see metrics_log.h
//   failed/step-N.json     steps whose loss or gradients were not finite; see failed_step.h
//   cache/                 prepared data; kept when a run is overwritten
//   config.json, model.safetensors, *.spm, generation_config.json
//                          the model: a finished run's folder is also a model folder
//
// Nothing of an earlier run is changed before start(), so that errors leave it intact. A run that
// has neither a checkpoint nor a model may be replaced by a fresh run without --overwrite. A folder
// that is not a run's but contains other files is refused, because a run might overwrite them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace nunchi {

struct ModelChoice;

class RunFolder {
 public:
  enum class StartMode : std::uint8_t {
    fresh,      // a new run in a folder without one
    resume,     // continues the folder's run
    overwrite,  // a new run; removes the files of an earlier run and nothing else
  };

  // Creates the folder if it is missing, locks it and removes temporary files of killed processes.
  // Throws UsageError when `mode` does not fit the folder's contents, and Error when another
  // process holds the lock, when the folder was written by a later version, or when it cannot be
  // written. `allowed` names entries that the folder may contain although no run wrote them.
  RunFolder(const std::filesystem::path& path, StartMode mode,
            std::span<const std::string> allowed = {});
  // Releases the lock. If start() was never called, removes what the constructor created and an
  // empty cache/, but keeps prepared data.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  // Marks the folder as this run's. Removes an earlier run, unless it is resumed.
  void start();
  // Records in run.json which weights are the model in this folder.
  void set_model(const ModelChoice& choice) const;
  // Throws UsageError when start() would remove the file `input`; `key` is the option that names
  // it.
  void check_not_removed(const std::filesystem::path& input, const std::string& key) const;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path failed() const { return path_ / "failed"; }
  // The checkpoint from which a resumed run continues; empty if the run starts at the first step.
  std::filesystem::path last_checkpoint() const;

  // Throws the constructor's errors, except those of locking and writing; changes nothing.
  static void check(const std::filesystem::path& path, StartMode mode,
                    std::span<const std::string> allowed = {});
  // The name of an entry of the folder that is neither in `allowed` nor left by a run that was
  // killed before start(). Empty if there is none or if the folder does not exist.
  static std::string foreign_entry(const std::filesystem::path& path,
                                   std::span<const std::string> allowed = {});
  // Whether the folder has a run with a checkpoint or a model.
  static bool holds_run(const std::filesystem::path& path);

 private:
  void create_folder();
  void take_lock();
  void release();
  std::vector<std::filesystem::path> files_to_remove() const;

  std::filesystem::path path_;
  StartMode mode_;
  bool started_ = false;
  // The lock file and the folders that this object created, inner ones first.
  std::vector<std::filesystem::path> created_;
  int lock_ = -1;  // file descriptor
};

}  // namespace nunchi
