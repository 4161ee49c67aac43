#include "nunchi/training/run/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "nunchi/base/atomic_file.h"
#include "nunchi/base/error.h"
#include "nunchi/base/printable.h"
#include "nunchi/base/random_access_file.h"
#include "nunchi/models/format/tokenizers.h"
#include "nunchi/training/run/atomic_folder.h"
#include "nunchi/training/run/checkpoint.h"
#include "nunchi/training/run/model_choice.h"

namespace nunchi {
namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 1;
constexpr const char* kMarker = "run.json";
constexpr const char* kWeights = "model.safetensors";

bool path_exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Throws Error for a run whose format this version of the program cannot read.
void check_format(const fs::path& run) {
  const auto json = nlohmann::json::parse(read_small_file(run / kMarker), nullptr, false);
  const auto format = json.is_object() ? json.find("format") : json.end();
  if (!json.is_object() || format == json.end() || !format->is_number_integer()) {
    throw Error((run / kMarker).string() + ": expected {\"format\": 1}, the format of a run.");
  }
  if (*format != kFormat) {
    throw Error("'" + run.string() + "' was written in format " + format->dump() +
                ", but this version reads only format " + std::to_string(kFormat) + ".");
  }
}

void write_marker(const fs::path& run, const nlohmann::ordered_json& content) {
  const std::string text = content.dump() + "\n";
  AtomicFile marker(run / kMarker);
  marker.write(std::as_bytes(std::span(text)));
  marker.commit();
}

// The entries of a folder whose names start with `prefix`; none if the folder is missing.
std::vector<fs::path> entries_with_prefix(const fs::path& folder, std::string_view prefix) {
  std::vector<fs::path> found;
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failure)) {
    if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
  }
  return found;
}

// Whether `inner` is `outer` or below it.
bool is_within(const fs::path& inner, const fs::path& outer) {
  std::error_code ignored;
  const fs::path a = fs::weakly_canonical(inner, ignored), b = fs::weakly_canonical(outer, ignored);
  return std::mismatch(b.begin(), b.end(), a.begin(), a.end()).first == b.end();
}

}  // namespace

bool RunFolder::holds_run(const fs::path& path) {
  return path_exists(path / kMarker) &&
         (path_exists(path / kWeights) || !checkpoint_steps(path / "checkpoints").empty());
}

std::string RunFolder::foreign_entry(const fs::path& path, std::span<const std::string> allowed) {
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, failure)) {
    const std::string name = entry.path().filename().string();
    const bool is_leftover = name == "lock" || name == "cache" ||
                             (name.starts_with(".nunchi-") && name.ends_with(".tmp"));
    if (!is_leftover && std::ranges::find(allowed, name) == allowed.end()) return name;
  }
  return {};
}

void RunFolder::check(const fs::path& path, StartMode mode, std::span<const std::string> allowed) {
  const bool is_marked = path_exists(path / kMarker);
  const bool is_model = path_exists(path / "config.json") || path_exists(path / kWeights);
  const std::string name = "'" + path.string() + "'";
  if (mode == StartMode::resume && !is_marked) {
    throw UsageError(name + " has no run to resume.");
  }
  if (mode == StartMode::resume && is_model && checkpoint_steps(path / "checkpoints").empty()) {
    throw UsageError(name +
                     " has a run's model but none of its checkpoints, so it cannot be resumed.");
  }
  if (mode == StartMode::fresh && holds_run(path)) {
    throw UsageError(name +
                     " already has a run. Continue it with --resume, or replace it with "
                     "--overwrite.");
  }
  if (!is_marked && is_model) {
    throw UsageError(name +
                     " has a model that was not written by a run. Choose another output folder.");
  }
  if (is_marked) return check_format(path);
  if (const std::string other = foreign_entry(path, allowed); !other.empty()) {
    throw UsageError(name + " contains '" + printable(other) +
                     "', which was not written by a run and might be overwritten. Choose another "
                     "output folder.");
  }
}

RunFolder::RunFolder(const fs::path& path, StartMode mode, std::span<const std::string> allowed)
    : path_(path), mode_(mode) {
  check(path, mode, allowed);
  try {
    create_folder();
    take_lock();
    check(path, mode,
          allowed);  // again: another process may have changed the folder before the lock
    for (const fs::path& folder : {path, path / "cache", checkpoints()}) remove_leftovers(folder);
  } catch (...) {
    release();
    throw;
  }
}

RunFolder::~RunFolder() { release(); }

void RunFolder::create_folder() {
  std::error_code failure;
  // "runs/a/" becomes "runs/a".
  for (fs::path folder = (fs::absolute(path_, failure) / "").parent_path();
       !path_exists(folder) && folder.has_filename(); folder = folder.parent_path()) {
    created_.push_back(folder);
  }
  fs::create_directories(path_, failure);
  if (failure) throw Error("cannot make the folder " + path_.string() + ": " + failure.message());
}

void RunFolder::take_lock() {
  const fs::path file = path_ / "lock";
  struct stat locked {
  }, current{};
  while (true) {
    const bool is_new = !path_exists(file);
    lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock_ < 0) throw Error("cannot write " + file.string() + ": " + std::strerror(errno));
    if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) {
        throw Error("cannot lock " + file.string() + ": " + std::strerror(errno));
      }
      throw Error("'" + path_.string() +
                  "' is in use by another run. Wait until it ends or stop it, or choose another "
                  "output folder.");
    }
    // The previous holder may have removed the file after this process opened it; then the lock is
    // useless, and the loop tries again.
    const bool same_file = ::fstat(lock_, &locked) == 0 && ::stat(file.c_str(), &current) == 0 &&
                           locked.st_ino == current.st_ino && locked.st_dev == current.st_dev;
    if (same_file && is_new) created_.insert(created_.begin(), file);
    if (same_file) return;
    ::close(lock_);
  }
}

void RunFolder::release() {
  std::error_code ignored;
  if (!started_ && lock_ >= 0)
    fs::remove(path_ / "cache", ignored);  // succeeds only if it is empty
  if (!started_) {
    for (const fs::path& path : created_) fs::remove(path, ignored);
  }
  if (lock_ >= 0) ::close(lock_);
}

std::vector<fs::path> RunFolder::files_to_remove() const {
  if (mode_ == StartMode::resume || !path_exists(path_ / kMarker)) return {};
  std::vector<fs::path> files;
  for (const std::int64_t step : checkpoint_steps(checkpoints())) {
    files.push_back(checkpoint_path(checkpoints(), step));
  }
  const auto add = [&](const std::vector<fs::path>& more) {
    files.insert(files.end(), more.begin(), more.end());
  };
  // Earlier versions wrote event files to events/.
  for (const fs::path& folder : {path_, path_ / "events"}) {
    add(entries_with_prefix(folder, "events.out.tfevents."));
  }
  add(entries_with_prefix(failed(), "step-"));
  add({path_ / "log.jsonl"});
  // Without weights beside them, these files are the user's and not the run's.
  if (path_exists(path_ / kWeights)) {
    for (const char* name : {"config.json", "generation_config.json", kWeights}) {
      add({path_ / name});
    }
    for (const std::string& name : tokenizer_names()) add({path_ / name});
  }
  return files;
}

void RunFolder::check_not_removed(const fs::path& input, const std::string& key) const {
  for (const fs::path& file : files_to_remove()) {
    if (!is_within(input, file)) continue;
    throw UsageError("'" + key + "' is " + input.string() +
                     ", which is part of the earlier run in '" + path_.string() +
                     "' and would be removed. Copy it elsewhere, or choose another output folder.");
  }
}

void RunFolder::start() {
  std::error_code failure;
  for (const fs::path& file : files_to_remove()) {
    if (fs::is_directory(file, failure)) {
      remove_folder(file);
      continue;
    }
    fs::remove(file, failure);
    if (failure) throw Error("cannot remove " + file.string() + ": " + failure.message());
  }
  if (mode_ != StartMode::resume) {
    for (const fs::path& folder : {path_ / "events", failed()}) fs::remove(folder, failure);
  }
  // A resumed run keeps its marker, which describes the model of an earlier end.
  if (mode_ != StartMode::resume) write_marker(path_, {{"format", kFormat}});
  started_ = true;
  fs::create_directories(checkpoints(), failure);
  if (failure) throw Error("cannot make " + checkpoints().string() + ": " + failure.message());
}

void RunFolder::set_model(const ModelChoice& choice) const {
  write_marker(path_,
               {{"format", kFormat}, {"model", nlohmann::ordered_json::parse(to_json(choice))}});
}

fs::path RunFolder::last_checkpoint() const {
  if (mode_ != StartMode::resume) return {};
  const std::vector<std::int64_t> steps = checkpoint_steps(checkpoints());
  return steps.empty() ? fs::path() : checkpoint_path(checkpoints(), steps.back());
}

}  // namespace nunchi
