// A file that appears whole or not at all.
//
// The bytes go to a temporary file in the same folder (.nunchi-PID-N.tmp); commit() syncs it, gives
// it its name in one step and syncs the folder. Whatever happens before that, a crash included,
// leaves a file that already had the name as it was. A killed process can leave its temporary file
// behind; it is never read, and never in the way.
//
// The new file has the mode of the one that it replaces, and its owner where the system permits. A
// link stays a link: what it leads to is replaced. What is there and is no file (a terminal, a
// pipe, /dev/null, what /dev/stdout leads to) cannot be replaced and is written to directly.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace nunchi {

// Every function throws Error with the system's reason: a missing or read-only folder, a folder in
// the file's place, and NoRoom for a full disk.
class AtomicFile {
 public:
  // Waits for a reader where the path is a pipe's.
  explicit AtomicFile(const std::filesystem::path& path);
  // Removes the temporary file unless it was committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends. Nothing can be written after commit().
  void write(std::span<const std::byte> bytes);
  // On return the new file is on the disk under its name, replacing an earlier one.
  void commit();

  // The file that is written to before commit(), for whoever ends the process without destructors;
  // empty when there is none.
  std::filesystem::path temporary() const;

 private:
  struct Descriptor {
    int value = -1;
    void close();
    ~Descriptor() { close(); }
  };

  void open_directly();
  void make_temporary();
  [[noreturn]] void fail(int reason) const;

  std::filesystem::path path_;    // as it was asked for
  std::filesystem::path target_;  // where that leads to
  // Held open, so that the file lands where it was asked for even if the folder moves meanwhile.
  Descriptor folder_;
  Descriptor file_;
  // Its name inside the folder; empty once it has become the file, and when there is none.
  std::string temporary_;
};

}  // namespace nunchi
