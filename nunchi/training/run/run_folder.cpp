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
#include "nunchi/base/mapped_file.h"
#include "nunchi/base/printable.h"
#include "nunchi/models/format/tokenizers.h"
#include "nunchi/training/run/atomic_folder.h"
#include "nunchi/training/run/checkpoint.h"

namespace nunchi {
namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 1;
constexpr const char* kMarker = "run.json";
constexpr const char* kWeights = "model.safetensors";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Throws for a run that this version of the program cannot continue.
void check_format(const fs::path& run) {
  const MappedFile file(run / kMarker);
  const auto* text = reinterpret_cast<const char*>(file.bytes().data());
  const auto json = nlohmann::json::parse(text, text + file.bytes().size(), nullptr, false);
  const auto format = json.is_object() ? json.find("format") : json.end();
  if (!json.is_object() || format == json.end() || !format->is_number_integer()) {
    throw Error((run / kMarker).string() + ": a run's format is expected, {\"format\": 1}.");
  }
  if (*format != kFormat) {
    throw Error("'" + run.string() + "' was written in format " + format->dump() +
                ", but this version knows format " + std::to_string(kFormat) + " only.");
  }
}

// The entries of a folder whose names begin so; none if the folder is missing.
std::vector<fs::path> entries_like(const fs::path& folder, std::string_view beginning) {
  std::vector<fs::path> found;
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failure)) {
    if (entry.path().filename().string().starts_with(beginning)) found.push_back(entry.path());
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
  return is_there(path / kMarker) &&
         (is_there(path / kWeights) || !checkpoint_steps(path / "checkpoints").empty());
}

std::string RunFolder::foreign_entry(const fs::path& path, std::span<const std::string> own) {
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, failure)) {
    const std::string name = entry.path().filename().string();
    const bool begun = name == "lock" || name == "cache" ||
                       (name.starts_with(".nunchi-") && name.ends_with(".tmp"));
    if (!begun && std::ranges::find(own, name) == own.end()) return name;
  }
  return {};
}

void RunFolder::check(const fs::path& path, Begin begin, std::span<const std::string> own) {
  const bool is_marked = is_there(path / kMarker);
  const bool is_model = is_there(path / "config.json") || is_there(path / kWeights);
  const std::string name = "'" + path.string() + "'";
  if (begin == Begin::resume && !is_marked) {
    throw UsageError(name + " has no run to resume.");
  }
  if (begin == Begin::resume && is_model && checkpoint_steps(path / "checkpoints").empty()) {
    throw UsageError(name +
                     " has a run's model but none of its checkpoints, so it cannot be resumed.");
  }
  if (begin == Begin::fresh && holds_run(path)) {
    throw UsageError(name +
                     " has a run already. Continue it with --resume, or replace it with "
                     "--overwrite.");
  }
  if (!is_marked && is_model) {
    throw UsageError(name +
                     " has a model that was not written by a run. Choose another output folder.");
  }
  if (is_marked) return check_format(path);
  if (const std::string other = foreign_entry(path, own); !other.empty()) {
    throw UsageError(
        name + " has the entry '" + printable(other) +
        "', which no run wrote and a run might overwrite. Choose another output folder.");
  }
}

RunFolder::RunFolder(const fs::path& path, Begin begin, std::span<const std::string> own)
    : path_(path), begin_(begin) {
  check(path, begin, own);
  try {
    make_folder();
    take_lock();
    check(path, begin, own);  // again: another process may have changed it before the lock
    for (const fs::path& folder : {path, path / "cache", checkpoints()}) remove_leftovers(folder);
  } catch (...) {
    release();
    throw;
  }
}

RunFolder::~RunFolder() { release(); }

void RunFolder::make_folder() {
  std::error_code failure;
  // "runs/a/" is "runs/a".
  for (fs::path folder = (fs::absolute(path_, failure) / "").parent_path();
       !is_there(folder) && folder.has_filename(); folder = folder.parent_path()) {
    made_.push_back(folder);
  }
  fs::create_directories(path_, failure);
  if (failure) throw Error("cannot make the folder " + path_.string() + ": " + failure.message());
}

void RunFolder::take_lock() {
  const fs::path file = path_ / "lock";
  struct stat held {
  }, named{};
  while (true) {
    const bool is_new = !is_there(file);
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
    // The previous holder may have removed the file just before this process locked it.
    const bool same = ::fstat(lock_, &held) == 0 && ::stat(file.c_str(), &named) == 0 &&
                      held.st_ino == named.st_ino && held.st_dev == named.st_dev;
    if (same && is_new) made_.insert(made_.begin(), file);
    if (same) return;
    ::close(lock_);
  }
}

void RunFolder::release() {
  std::error_code ignored;
  if (!started_ && lock_ >= 0) fs::remove(path_ / "cache", ignored);  // if it is empty
  if (!started_) {
    for (const fs::path& made : made_) fs::remove(made, ignored);
  }
  if (lock_ >= 0) ::close(lock_);
}

std::vector<fs::path> RunFolder::files_to_remove() const {
  if (begin_ == Begin::resume || !is_there(path_ / kMarker)) return {};
  std::vector<fs::path> files;
  for (const std::int64_t step : checkpoint_steps(checkpoints())) {
    files.push_back(checkpoint_path(checkpoints(), step));
  }
  const auto add = [&](const std::vector<fs::path>& more) {
    files.insert(files.end(), more.begin(), more.end());
  };
  add(entries_like(path_ / "events", "events.out.tfevents."));
  add(entries_like(failed(), "step-"));
  add({path_ / "log.jsonl"});
  // Without weights beside them these are not the run's but the user's own files.
  if (is_there(path_ / kWeights)) {
    for (const char* name : {"config.json", "generation_config.json", kWeights}) {
      add({path_ / name});
    }
    for (const std::string& name : tokenizer_names()) add({path_ / name});
  }
  return files;
}

void RunFolder::check_stays(const fs::path& input, const std::string& key) const {
  for (const fs::path& file : files_to_remove()) {
    if (!is_within(input, file)) continue;
    throw UsageError(
        "'" + key + "' is " + input.string() + ", which belongs to the run in '" + path_.string() +
        "' that would be removed. Copy it elsewhere, or choose another output folder.");
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
  if (begin_ != Begin::resume) {
    for (const fs::path& folder : {path_ / "events", failed()}) fs::remove(folder, failure);
  }
  const std::string text = nlohmann::json{{"format", kFormat}}.dump() + "\n";
  AtomicFile marker(path_ / kMarker);
  marker.write(std::as_bytes(std::span(text)));
  marker.commit();
  started_ = true;
  fs::create_directories(checkpoints(), failure);
  if (failure) throw Error("cannot make " + checkpoints().string() + ": " + failure.message());
}

fs::path RunFolder::last_checkpoint() const {
  if (begin_ != Begin::resume) return {};
  const std::vector<std::int64_t> steps = checkpoint_steps(checkpoints());
  return steps.empty() ? fs::path() : checkpoint_path(checkpoints(), steps.back());
}

}  // namespace nunchi
