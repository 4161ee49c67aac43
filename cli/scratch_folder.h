// A temporary folder.
#pragma once

#include <filesystem>

namespace nunchi::cli {

// A new folder in the system's temporary folder; the destructor removes it with its contents.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace nunchi::cli
