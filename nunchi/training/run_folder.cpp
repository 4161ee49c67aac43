#include "nunchi/training/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "nunchi/base/atomic_file.h"
#include "nunchi/base/error.h"
#include "nunchi/base/mapped_file.h"
#include "nunchi/training/atomic_folder.h"

namespace nunchi {
namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 1;
constexpr const char* kMarker = "run.json";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Throws for a run that this version cannot continue.
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

// What runs write, the prepared data excepted.
void remove_run(const fs::path& run) {
  const auto remove = [](const fs::path& path) {
    std::error_code failure;
    fs::remove_all(path, failure);
    if (failure) throw Error("cannot remove " + path.string() + ": " + failure.message());
  };
  if (is_there(run / "checkpoints")) remove_folder(run / "checkpoints");
  for (const char* name : {"log.jsonl", "events", "failed", "config.json", "model.safetensors",
                           "generation_config.json"}) {
    remove(run / name);
  }
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(run, failure)) {
    if (entry.path().extension() == ".spm") remove(entry.path());
  }
  // Last: what is left of a run that was removed by half is still one.
  remove(run / kMarker);
}

}  // namespace

void RunFolder::check(const fs::path& path, Begin begin) {
  const bool is_run = is_there(path / kMarker);
  const bool is_model = is_there(path / "config.json") || is_there(path / "model.safetensors");
  const std::string name = "'" + path.string() + "'";
  if (begin == Begin::resume && !is_run) {
    throw UsageError(name + " holds no run that could be resumed.");
  }
  if (begin == Begin::fresh && is_run) {
    throw UsageError(name +
                     " holds a run already. Continue it with --resume, or remove it and begin "
                     "again with --overwrite.");
  }
  if (!is_run && is_model) {
    throw UsageError(name + " holds a model that no run of this program wrote. Choose another " +
                     "output folder.");
  }
  if (is_run) check_format(path);
}

RunFolder::RunFolder(const fs::path& path, Begin begin) : path_(path) {
  check(path, begin);
  std::error_code failure;
  fs::create_directories(path, failure);
  if (failure) throw Error("cannot make the folder " + path.string() + ": " + failure.message());
  take_lock();
  try {
    check(path, begin);  // another process may have been quicker
    remove_leftovers(path);
    remove_leftovers(path / "cache");
    if (begin == Begin::overwrite && is_there(path / kMarker)) remove_run(path);
    if (!is_there(path / kMarker)) {
      const std::string text = nlohmann::json{{"format", kFormat}}.dump() + "\n";
      AtomicFile marker(path / kMarker);
      marker.write(std::as_bytes(std::span(text)));
      marker.commit();
    }
    fs::create_directories(checkpoints(), failure);
    if (failure) throw Error("cannot make " + checkpoints().string() + ": " + failure.message());
    remove_leftovers(checkpoints());
  } catch (...) {
    ::close(lock_);
    throw;
  }
}

RunFolder::~RunFolder() { ::close(lock_); }

void RunFolder::take_lock() {
  const fs::path file = path_ / "lock";
  lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0) throw Error("cannot write " + file.string() + ": " + std::strerror(errno));
  if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
  const int reason = errno;
  ::close(lock_);
  if (reason == EWOULDBLOCK) throw Error("'" + path_.string() + "' is in use by another run.");
  throw Error("cannot lock " + file.string() + ": " + std::strerror(reason));
}

}  // namespace nunchi
