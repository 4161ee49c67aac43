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

// Lines, wherever they come from.
class LineSource {
 public:
  virtual ~LineSource() = default;
  // Waits for a line; false at the end. `line` is empty then.
  virtual bool next(std::string& line) = 0;
  // Whether next() would return at once: a line has come, or the end.
  virtual bool is_waiting() { return true; }
  // How many lines so far were longer than is kept.
  virtual std::int64_t cut_lines() const = 0;
};

// Reads plain files, gzip and xz archives (told apart by their first bytes). A line ends with
// "\n" or "\r\n", which is left out; the last one may end with the file. A UTF-8 byte order mark at
// the file's beginning is left out. All other bytes stay as they are, NUL and invalid UTF-8 too.
//
// Throws Error, with the file and the line that was reached, when the file is missing, unreadable,
// a folder, in UTF-16, or an archive that is damaged or ends in the middle.
class LineReader final : public LineSource {
 public:
  explicit LineReader(const std::filesystem::path& path, const LineOptions& options = {});
  ~LineReader() override;
  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;

  bool next(std::string& line) override;

  // How many lines next() has given: the last one's number, counted from 1.
  std::int64_t line_number() const { return line_number_; }
  // Whether the last line was longer than is kept. It was cut between characters.
  bool was_cut() const { return was_cut_; }
  std::int64_t cut_lines() const override { return cut_lines_; }
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
