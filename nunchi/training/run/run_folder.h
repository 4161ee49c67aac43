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
//
// Before start() nothing of an earlier run is touched, so that whatever can fail does so while it
// is still there. A run that has neither a checkpoint nor a model is none: the next takes its
// folder. A folder with other things in it that is no run's is refused: they might have the names
// of a run's files.
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
    fresh,      // where nothing is, or a run that is none
    resume,     // where a run is
    overwrite,  // a fresh run; what an earlier one left is removed, nothing else
  };

  // Makes the folder if need be, locks it and clears away what killed writers left. Throws
  // UsageError when `begin` does not fit what is there, and Error when another process holds the
  // folder, when it was written by a later version, or when it cannot be written. `own` names
  // entries that the caller put there itself, before there was a run.
  RunFolder(const std::filesystem::path& path, Begin begin, std::span<const std::string> own = {});
  // Lets go of the lock. What was made for a run that never started goes, prepared data excepted.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  // From here on the folder is this run's. Unless it is resumed, an earlier one is gone.
  void start();
  // Throws UsageError when start() would remove the file `input`; `key` is the option that named
  // it.
  void check_stays(const std::filesystem::path& input, const std::string& key) const;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path failed() const { return path_ / "failed"; }
  // Where a resumed run goes on; empty when there is none and the run begins at the beginning.
  std::filesystem::path last_checkpoint() const;

  // What the constructor would refuse, without touching anything; a lock that is held excepted.
  static void check(const std::filesystem::path& path, Begin begin,
                    std::span<const std::string> own = {});
  // An entry of the folder, which may be missing, that is neither among `own` nor what a run leaves
  // that was killed before start(). Empty: there is none.
  static std::string foreign_entry(const std::filesystem::path& path,
                                   std::span<const std::string> own = {});
  // Whether a run has left something in the folder that took time to make.
  static bool holds_run(const std::filesystem::path& path);

 private:
  void make_folder();
  void take_lock();
  void let_go();
  std::vector<std::filesystem::path> files_to_remove() const;

  std::filesystem::path path_;
  Begin begin_;
  bool started_ = false;
  std::vector<std::filesystem::path>
      made_;  // the lock and folders that were not there, inner first
  int lock_ = -1;
};

}  // namespace nunchi
