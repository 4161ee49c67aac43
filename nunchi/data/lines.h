// The lines of a text file, one after another, in constant memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace nunchi {

class ByteStream;

struct LineOptions {
  // Bytes that are kept of a line; the rest of it is skipped.
  std::size_t longest = std::size_t{1} << 20;
};

// Reads plain files, gzip and xz archives (told apart by their first bytes). A line ends with
// "\n" or "\r\n", which is left out; the last one may end with the file. A UTF-8 byte order mark at
// the file's beginning is left out. All other bytes stay as they are, NUL and invalid UTF-8 too.
//
// Throws Error, with the file and the line that was reached, when the file is missing, unreadable,
// a folder, in UTF-16, or an archive that is damaged or ends in the middle.
class LineReader {
 public:
  explicit LineReader(const std::filesystem::path& path, const LineOptions& options = {});
  ~LineReader();
  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;

  // False at the end of the file; `line` is empty then.
  bool next(std::string& line);

  // How many lines next() has given: the last one's number, counted from 1.
  std::int64_t line_number() const { return line_number_; }
  // Whether the last line was longer than is kept. It was cut between characters.
  bool was_cut() const { return was_cut_; }
  // How many lines so far were.
  std::int64_t cut_lines() const { return cut_lines_; }
  // Bytes of the file taken so far, packed ones if it is an archive.
  std::int64_t consumed() const;
  const std::filesystem::path& path() const { return path_; }

 private:
  bool fill();

  std::filesystem::path path_;
  LineOptions options_;
  std::unique_ptr<ByteStream> bytes_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;  // of what is waiting in the buffer
  std::size_t end_ = 0;
  std::int64_t line_number_ = 0;
  std::int64_t cut_lines_ = 0;
  bool was_cut_ = false;
};

}  // namespace nunchi
