// A folder that appears whole or not at all.
//
// It is filled under a temporary name (.nunchi-PID-N.tmp) in the same parent folder; commit() syncs
// it, renames it in one step and syncs the parent. Where the file system cannot exchange two
// folders in one step, a folder that is replaced is called .nunchi-replaced-NAME for a moment. A
// killed process can leave such folders behind: remove_leftovers() removes them, and gives a
// replaced folder its name back if the new one is missing.
#pragma once

#include <filesystem>
#include <functional>

namespace nunchi {

// Every function throws Error with the system's error message, for example for a missing or
// read-only folder or a full disk.
class AtomicFolder {
 public:
  explicit AtomicFolder(const std::filesystem::path& path);
  // Removes the temporary folder unless it was committed.
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  // The folder to write the files into. The caller must sync each file (see AtomicFile).
  const std::filesystem::path& temporary() const { return temporary_; }
  // Calls write(temporary()). Error messages name the final path of a file, not the temporary one.
  void fill(const std::function<void(const std::filesystem::path&)>& write) const;
  // On return the folder is on disk under its final name; replaces an earlier folder of that name.
  void commit();

 private:
  // Gives the temporary folder the name of an existing one, which becomes the temporary one.
  void replace();

  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty after commit()
};

// Moves the files of one folder into another, each atomically; replaces files of the same name.
void move_files(const std::filesystem::path& from, const std::filesystem::path& into);

// Removes a folder with its contents. The folder is renamed first, so that a partly removed folder
// is never visible under its name.
void remove_folder(const std::filesystem::path& path);

// Removes the temporary files and folders that killed processes left in `folder`, and restores
// folders whose replacement was interrupted. No other process may write there during the call.
void remove_leftovers(const std::filesystem::path& folder);

}  // namespace nunchi
