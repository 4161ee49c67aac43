// A file that is appended to while other processes may read it.
#pragma once

#include <filesystem>
#include <string_view>

namespace nunchi {

// Every function throws Error with the system's error message.
class AppendFile {
 public:
  // Opens the file for appending; creates it if it is missing.
  explicit AppendFile(const std::filesystem::path& path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // On return the bytes are in the file, written by one system call unless the disk is full.
  void write(std::string_view bytes);

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int file_;
};

}  // namespace nunchi
