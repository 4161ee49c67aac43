// A folder that appears whole or not at all.
//
// It is filled under a temporary name (.nunchi-PID-N.tmp) in the same parent folder; commit() syncs
// it, renames it in one step and syncs the parent. A killed process can leave its temporary folder
// behind: remove_leftovers() removes those.
#pragma once

#include <filesystem>
#include <functional>

namespace nunchi {

// Every function throws Error with the system's reason: a missing or read-only folder, a full disk.
class AtomicFolder {
 public:
  explicit AtomicFolder(const std::filesystem::path& path);
  // Removes the temporary folder unless it was committed.
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  // Where to write the files. The caller syncs each of them (see AtomicFile).
  const std::filesystem::path& temporary() const { return temporary_; }
  // Calls write(temporary()). Errors name the final path of a file, not the temporary one.
  void fill(const std::function<void(const std::filesystem::path&)>& write) const;
  // On return the folder is on the disk under its name; it replaces an earlier one of that name.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty after commit()
};

// Moves the files of one folder into another, each in one step; they replace files of their names.
void move_files(const std::filesystem::path& from, const std::filesystem::path& into);

// Removes a folder with its contents. It is renamed first, so that a partly removed folder is never
// visible under its name.
void remove_folder(const std::filesystem::path& path);

// Removes the temporary files and folders that killed writers left in a folder. The caller makes
// sure that no other process writes there.
void remove_leftovers(const std::filesystem::path& folder);

}  // namespace nunchi
