// A file that grows at its end while others read it.
#pragma once

#include <filesystem>
#include <string_view>

namespace nunchi {

// Every function throws Error with the system's reason.
class AppendFile {
 public:
  // Opens the file at its end, or makes it.
  explicit AppendFile(const std::filesystem::path& path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // In the file when it returns; in one piece unless the disk is full.
  void write(std::string_view bytes);

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int file_;
};

}  // namespace nunchi
