// A file that appears whole or not at all.
//
// The bytes go to a temporary file in the same folder (.nunchi-PID-N.tmp); commit() syncs it, gives
// it its name in one step and syncs the folder. Whatever happens before that, a crash included,
// leaves a file that already had the name as it was. A killed process can leave its temporary file
// behind; it is never read, and never in the way.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace nunchi {

// Every function throws Error with the system's reason: a missing or read-only folder, a full disk.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  // Removes the temporary file unless it was committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends. Nothing can be written after commit().
  void write(std::span<const std::byte> bytes);
  // On return the new file is on the disk under its name, replacing an earlier one.
  void commit();

 private:
  struct Descriptor {
    int value = -1;
    void close();
    ~Descriptor() { close(); }
  };

  [[noreturn]] void fail(int reason) const;

  std::filesystem::path path_;
  // Held open, so that the file lands where it was asked for even if the folder moves meanwhile.
  Descriptor folder_;
  Descriptor file_;
  std::string temporary_;  // its name inside the folder; empty once it has become the file
};

}  // namespace nunchi
