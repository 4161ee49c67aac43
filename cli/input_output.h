// Where lines come from and where text goes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/stop_signals.h"
#include "nunchi/base/atomic_file.h"
#include "nunchi/data/lines.h"

namespace nunchi::cli {

// Stdin as it comes ("-"), or a file, packed or not.
std::unique_ptr<LineSource> open_input(const std::string& path);

// Stdout as it comes ("-"), or a file that appears when all of it is there.
class Output {
 public:
  explicit Output(const std::string& path);

  // False once the reader has gone.
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
