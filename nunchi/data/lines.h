// Reads the lines of a text file, one after another, in constant memory.
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
  // The maximum length of a line; the rest of the line is skipped.
  std::size_t max_bytes = std::size_t{1} << 20;
};

// A source of lines: a file or a stream.
class LineSource {
 public:
  virtual ~LineSource() = default;
  // Waits for a line. Returns false, with an empty `line`, at the end.
  virtual bool next(std::string& line) = 0;
  // Whether next() would return without waiting: a line or the end has arrived.
  virtual bool is_ready() { return true; }
  // The number of lines so far that were cut because they were too long.
  virtual std::int64_t cut_lines() const = 0;
};

// Reads plain files, gzip and xz archives, recognised by their first bytes. A line ends with "\n"
// or "\r\n", which is left out; the last line may have no line end. A UTF-8 byte order mark at the
// beginning is left out. All other bytes are unchanged, including NUL and invalid UTF-8.
//
// Throws Error, with the file and the number of lines read, when the file is missing, unreadable, a
// folder, in UTF-16, or an archive that is damaged or incomplete.
class LineReader final : public LineSource {
 public:
  explicit LineReader(const std::filesystem::path& path, const LineOptions& options = {});
  ~LineReader() override;
  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;

  bool next(std::string& line) override;

  // The number of lines returned so far, which is also the number of the line that next() returned
  // last, counted from 1.
  std::int64_t line_number() const { return line_number_; }
  // Whether the line that next() returned last was too long and was cut. A cut never splits a UTF-8
  // character.
  bool was_cut() const { return was_cut_; }
  std::int64_t cut_lines() const override { return cut_lines_; }
  // Bytes of the file read so far; of an archive, compressed bytes.
  std::int64_t consumed() const;
  const std::filesystem::path& path() const { return path_; }

 private:
  bool fill();

  std::filesystem::path path_;
  LineOptions options_;
  std::unique_ptr<ByteStream> bytes_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;  // the unread bytes in the buffer are [begin_, end_)
  std::size_t end_ = 0;
  std::int64_t line_number_ = 0;
  std::int64_t cut_lines_ = 0;
  bool was_cut_ = false;
};

}  // namespace nunchi
