// A file that appears whole or not at all.
//
// The bytes go to a temporary file in the same folder (.nunchi-PID-N.tmp); commit() syncs it,
// renames it atomically and syncs the folder. A failure before that, even a crash, leaves an
// existing file of that name unchanged. A killed process can leave its temporary file behind; it is
// never read. The process locks its temporary file, so that others can recognise an abandoned one:
// remove_abandoned_files() removes those.
//
// The new file gets the mode of the file that it replaces, and its owner if the system permits. A
// link stays a link: its target is replaced. Anything other than a regular file (a terminal, a
// pipe, /dev/null, the target of /dev/stdout) cannot be replaced and is written to directly.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace nunchi {

// Every function throws Error with the system's reason (the folder is missing or read-only, a
// folder has that name), and DiskFull for a full disk.
class AtomicFile {
 public:
  // If the path is a pipe, waits for a reader.
  explicit AtomicFile(const std::filesystem::path& path);
  // Removes the temporary file unless it was committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends. Nothing can be written after commit().
  void write(std::span<const std::byte> bytes);
  // When it returns, the new file is on the disk under its name and has replaced an existing one.
  void commit();

  // The temporary file, for callers that end the process without running destructors. Empty after
  // commit() and where the path is written to directly.
  std::filesystem::path temporary() const;

 private:
  struct Descriptor {
    int value = -1;
    void close();
    ~Descriptor() { close(); }
  };

  void open_directly();
  void make_temporary();
  // False if remove_abandoned_files() has taken the file for an abandoned one.
  bool lock_temporary() const;
  [[noreturn]] void fail(int reason) const;

  std::filesystem::path path_;    // as given
  std::filesystem::path target_;  // with links followed
  // Held open, so that the file stays in its folder even if the folder is moved meanwhile.
  Descriptor folder_;
  Descriptor file_;
  // The temporary file's name inside the folder; empty after commit() and without a temporary file.
  std::string temporary_;
};

// Removes the temporary files in `folder` whose processes were killed. Other processes may write
// there at the same time. Errors are ignored.
void remove_abandoned_files(const std::filesystem::path& folder);

}  // namespace nunchi
