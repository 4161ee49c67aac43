#include "nunchi/data/lines.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"
#include "nunchi/data/byte_stream.h"

namespace nunchi {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Shortens the text to at most `max_bytes`, between two characters.
void cut(std::string& text, std::size_t max_bytes) {
  const auto is_continuation = [&](std::size_t i) {
    return (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;
  };
  std::size_t end = max_bytes;
  // A character has at most three continuation bytes. Text with more of them in a row is not UTF-8
  // and is cut at max_bytes.
  for (int step = 0; step < 3 && end > 0 && is_continuation(end); ++step) --end;
  text.resize(is_continuation(end) ? max_bytes : end);
}

}  // namespace

LineReader::LineReader(const std::filesystem::path& path, const LineOptions& options)
    : path_(path), options_(options), buffer_(kBufferBytes) {
  try {
    bytes_ = open_unpacked(path);
  } catch (const Error& error) {
    throw Error("cannot read " + path.string() + ": " + error.what() + ".");
  }
  // A single read may return only one byte.
  while (end_ < kByteOrderMark.size() && fill()) {
  }
  const std::string_view start(reinterpret_cast<const char*>(buffer_.data()), end_);
  if (start.starts_with("\xFF\xFE") || start.starts_with("\xFE\xFF")) {
    throw Error("cannot read " + path.string() +
                ": it is in UTF-16; write it in UTF-8 (iconv -f UTF-16 -t UTF-8).");
  }
  if (start.starts_with(kByteOrderMark)) begin_ = kByteOrderMark.size();
}

LineReader::~LineReader() = default;
LineReader::LineReader(LineReader&&) noexcept = default;
LineReader& LineReader::operator=(LineReader&&) noexcept = default;

std::int64_t LineReader::consumed() const { return bytes_->consumed(); }

// Reads more bytes after the unread ones. Returns false at the end of the file.
bool LineReader::fill() {
  if (begin_ == end_) begin_ = end_ = 0;
  try {
    const std::size_t got = bytes_->read(std::span(buffer_).subspan(end_));
    end_ += got;
    return got > 0;
  } catch (const Error& error) {
    throw Error("cannot read " + path_.string() + " after line " + grouped(line_number_) + ": " +
                error.what() + ".");
  }
}

bool LineReader::next(std::string& line) {
  line.clear();
  was_cut_ = false;
  // Stores at most two bytes more than the line may have: one for a "\r" at its end, and one to
  // detect that the line is too long.
  const std::size_t max_stored_bytes = options_.max_bytes + 2;
  bool found_bytes = false, ended = false;
  while (!ended && (begin_ < end_ || fill())) {
    found_bytes = true;
    const auto* text = reinterpret_cast<const char*>(buffer_.data()) + begin_;
    const std::size_t count = end_ - begin_;
    const auto* newline = static_cast<const char*>(std::memchr(text, '\n', count));
    ended = newline != nullptr;
    const std::size_t length = ended ? static_cast<std::size_t>(newline - text) : count;
    line.append(text, std::min(length, max_stored_bytes - line.size()));
    begin_ += length + (ended ? 1 : 0);
  }
  if (!found_bytes) return false;
  ++line_number_;
  if (line.size() <= options_.max_bytes + 1 && line.ends_with('\r')) line.pop_back();
  if (line.size() > options_.max_bytes) {
    cut(line, options_.max_bytes);
    was_cut_ = true;
    ++cut_lines_;
  }
  return true;
}

}  // namespace nunchi
