// A folder for what nobody keeps.
#pragma once

#include <filesystem>

namespace nunchi::cli {

// Made in the system's folder for temporary files; gone, with all that is in it, in the end.
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
