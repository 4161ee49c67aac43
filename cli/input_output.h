// The input and the output of a command.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/stop_signals.h"
#include "nunchi/base/atomic_file.h"
#include "nunchi/data/lines.h"

namespace nunchi::cli {

// The path of an input file for readers of files: "/dev/stdin" for "-".
std::string input_path(const std::string& path);

// Opens standard input ("-") or a file: plain, gzip or xz.
std::unique_ptr<LineSource> open_input(const std::string& path);

// Buffered standard output ("-"), or a file that exists only after finish().
class Output {
 public:
  explicit Output(const std::string& path);

  // False once the reader of standard output has closed the pipe.
  bool is_open() const { return open_; }
  void add(std::string_view text);
  void flush();
  void finish();

 private:
  void write_to_stdout();

  std::optional<AtomicFile> file_;
  std::optional<RemovedWhenStopped> removed_;
  bool open_ = true;
  std::string buffer_;
};

}  // namespace nunchi::cli
