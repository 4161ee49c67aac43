#include "nunchi/data/byte_stream.h"

#include <fcntl.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 17;
constexpr std::uint64_t kXzMaxMemory = std::uint64_t{256} << 20;

class RawFile final : public ByteStream {
 public:
  explicit RawFile(const std::filesystem::path& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) throw Error(std::strerror(errno));
    struct stat status {};
    if (::fstat(descriptor_, &status) == 0 && S_ISDIR(status.st_mode)) {
      ::close(descriptor_);
      throw Error("it is a folder");
    }
  }
  ~RawFile() override { ::close(descriptor_); }
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;

  std::size_t read(std::span<std::byte> out) override {
    while (true) {
      const auto got = ::read(descriptor_, out.data(), out.size());
      if (got >= 0) {
        consumed_ += got;
        return static_cast<std::size_t>(got);
      }
      if (errno != EINTR) throw Error(std::strerror(errno));
    }
  }

  std::int64_t consumed() const override { return consumed_; }

 private:
  int descriptor_;
  std::int64_t consumed_ = 0;
};

// A buffered file whose next bytes can be inspected before they are consumed.
class BufferedFile {
 public:
  explicit BufferedFile(std::unique_ptr<ByteStream> file)
      : file_(std::move(file)), buffer_(kBufferBytes) {}

  // The buffered bytes. Fills an empty buffer first; the result is empty only at the file's end.
  std::span<const std::byte> available() {
    if (begin_ == end_) {
      begin_ = 0;
      end_ = file_->read(buffer_);
    }
    return {buffer_.data() + begin_, end_ - begin_};
  }

  // The next `count` bytes, or fewer at the end of the file. Does not consume them.
  std::string_view peek(std::size_t count) {
    if (begin_ > 0) {
      std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
                buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
      end_ -= std::exchange(begin_, 0);
    }
    while (end_ < count) {
      const std::size_t got = file_->read(std::span(buffer_).subspan(end_));
      if (got == 0) break;
      end_ += got;
    }
    return {reinterpret_cast<const char*>(buffer_.data()), std::min(count, end_)};
  }

  void consume(std::size_t count) { begin_ += count; }

  std::int64_t consumed() const {
    return file_->consumed() - static_cast<std::int64_t>(end_ - begin_);
  }

 private:
  std::unique_ptr<ByteStream> file_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(BufferedFile file) : file_(std::move(file)) {}

  std::size_t read(std::span<std::byte> out) override {
    const auto from = file_.available();
    const std::size_t count = std::min(from.size(), out.size());
    std::copy_n(from.begin(), count, out.begin());
    file_.consume(count);
    return count;
  }

  std::int64_t consumed() const override { return file_.consumed(); }

 private:
  BufferedFile file_;
};

class GzipStream final : public ByteStream {
 public:
  explicit GzipStream(BufferedFile file) : file_(std::move(file)) {
    // 15: the largest window; 16: the data have gzip's header and checksum.
    if (inflateInit2(&state_, 15 + 16) != Z_OK) throw Error("zlib could not be started");
  }
  ~GzipStream() override { inflateEnd(&state_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  std::size_t read(std::span<std::byte> out) override {
    const auto capacity = static_cast<uInt>(std::min(out.size(), kBufferBytes));
    state_.next_out = reinterpret_cast<Bytef*>(out.data());
    state_.avail_out = capacity;
    while (state_.avail_out == capacity && capacity > 0 && !finished_) {
      // At the file's end zlib may still have output.
      const auto from = file_.available();
      state_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(from.data()));
      state_.avail_in = static_cast<uInt>(from.size());
      const int result = inflate(&state_, Z_NO_FLUSH);
      file_.consume(from.size() - state_.avail_in);
      if (result == Z_STREAM_END) {
        next_member();
      } else if (result == Z_BUF_ERROR && from.empty()) {
        throw Error("its gzip data end in the middle; the file is not complete");
      } else if (result == Z_MEM_ERROR) {
        throw Error("there is not enough memory to unpack it");
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        throw Error("its gzip data are damaged");
      }
    }
    return capacity - state_.avail_out;
  }

  std::int64_t consumed() const override { return file_.consumed(); }

 private:
  void next_member() {
    skip_zeros();
    const auto from = file_.available();
    finished_ = from.empty();
    // inflate() checks the member's header itself.
    if (!finished_) inflateReset(&state_);
  }

  // Tape drives and some tools pad with zeros.
  void skip_zeros() {
    for (auto from = file_.available(); !from.empty(); from = file_.available()) {
      const auto zeros = std::find_if(from.begin(), from.end(),
                                      [](std::byte byte) { return byte != std::byte{0}; });
      file_.consume(static_cast<std::size_t>(zeros - from.begin()));
      if (zeros != from.end()) return;
    }
  }

  BufferedFile file_;
  z_stream state_{};
  bool finished_ = false;
};

class XzStream final : public ByteStream {
 public:
  explicit XzStream(BufferedFile file) : file_(std::move(file)) {
    if (lzma_stream_decoder(&state_, kXzMaxMemory, LZMA_CONCATENATED) != LZMA_OK) {
      throw Error("liblzma could not be started");
    }
  }
  ~XzStream() override { lzma_end(&state_); }
  XzStream(const XzStream&) = delete;
  XzStream& operator=(const XzStream&) = delete;

  std::size_t read(std::span<std::byte> out) override {
    state_.next_out = reinterpret_cast<std::uint8_t*>(out.data());
    state_.avail_out = out.size();
    while (state_.avail_out == out.size() && !out.empty() && !finished_) {
      const auto from = file_.available();
      state_.next_in = reinterpret_cast<const std::uint8_t*>(from.data());
      state_.avail_in = from.size();
      const lzma_ret result = lzma_code(&state_, from.empty() ? LZMA_FINISH : LZMA_RUN);
      file_.consume(from.size() - state_.avail_in);
      finished_ = result == LZMA_STREAM_END;
      if (result != LZMA_OK && !finished_) fail(result);
    }
    return out.size() - state_.avail_out;
  }

  std::int64_t consumed() const override { return file_.consumed(); }

 private:
  [[noreturn]] static void fail(lzma_ret result) {
    switch (result) {
      case LZMA_BUF_ERROR:
        throw Error("its xz data end in the middle; the file is not complete");
      case LZMA_MEM_ERROR:
        throw Error("there is not enough memory to unpack it");
      case LZMA_MEMLIMIT_ERROR:
        throw Error(
            "unpacking its xz data takes more than 256 MiB of memory; pack it again with "
            "a smaller dictionary (xz -9 or lower)");
      case LZMA_OPTIONS_ERROR:
        throw Error("its xz data use a filter that this liblzma does not know");
      default:
        throw Error("its xz data are damaged");
    }
  }

  BufferedFile file_;
  lzma_stream state_ = LZMA_STREAM_INIT;
  bool finished_ = false;
};

using namespace std::string_view_literals;

// A text in UTF-8 cannot begin with these bytes, or is very unlikely to.
constexpr auto kGzip = "\x1F\x8B"sv;
constexpr auto kXz =
    "\xFD"
    "7zXZ\0"sv;
struct UnsupportedFormat {
  std::string_view magic;
  const char* name;
};
constexpr std::array<UnsupportedFormat, 3> kUnsupportedFormats{
    {{"\x28\xB5\x2F\xFD"sv, "zstd"}, {"BZh91AY&SY"sv, "bzip2"}, {"PK\x03\x04"sv, "zip"}}};

}  // namespace

std::unique_ptr<ByteStream> open_raw(const std::filesystem::path& path) {
  return std::make_unique<RawFile>(path);
}

std::unique_ptr<ByteStream> open_unpacked(const std::filesystem::path& path) {
  BufferedFile file(open_raw(path));
  const std::string_view start = file.peek(16);
  if (start.starts_with(kGzip)) return std::make_unique<GzipStream>(std::move(file));
  if (start.starts_with(kXz)) return std::make_unique<XzStream>(std::move(file));
  for (const UnsupportedFormat& format : kUnsupportedFormats) {
    if (start.starts_with(format.magic)) {
      throw Error("it is a " + std::string(format.name) +
                  " archive; only plain text, gzip and xz can be read");
    }
  }
  return std::make_unique<PlainStream>(std::move(file));
}

}  // namespace nunchi
