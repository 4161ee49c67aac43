// A folder that appears whole or not at all.
//
// It is filled under a temporary name (.nunchi-PID-N.tmp) beside its place; commit() syncs it,
// gives it its name in one step and syncs what it stands in. A killed process can leave its
// temporary folder behind: remove_leftovers() clears those away.
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

  // Where to write the files, each synced by whoever writes it (see AtomicFile).
  const std::filesystem::path& temporary() const { return temporary_; }
  // Calls write(temporary()). Errors name the place that a file was meant for.
  void fill(const std::function<void(const std::filesystem::path&)>& write) const;
  // On return the folder is on the disk under its name; an earlier one of that name is gone.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty once it has become the folder
};

// Moves the files of one folder into another, each in one step, where they replace others.
void move_files(const std::filesystem::path& from, const std::filesystem::path& into);

// Removes a folder with all that is in it. It loses its name first, so that nobody sees it half.
void remove_folder(const std::filesystem::path& path);

// Removes what killed writers left among a folder's entries: files and folders with temporary
// names. Only for whoever knows that nobody else writes there.
void remove_leftovers(const std::filesystem::path& folder);

}  // namespace nunchi
