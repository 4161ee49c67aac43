#include "nunchi/data/pair_store.h"

#include <array>
#include <bit>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"

namespace nunchi {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is mapped as it is");

constexpr std::size_t kHeaderBytes = 64;
constexpr std::string_view kHeader = "nunchi pairs 2\n";
constexpr std::uint64_t kMagic = 0x32'53'52'49'41'50'4E'4Eull;  // "NNPAIRS2"
constexpr std::size_t kBufferedTokens = std::size_t{1} << 16;   // tokens

// Only fields of 8 bytes, so that there is no padding.
struct Footer {
  std::uint64_t magic = kMagic;
  Digest key;
  std::uint64_t pairs = 0;
  std::uint64_t tokens = 0;
  PairReport report;
  Digest tokens_digest;
  std::uint64_t file_bytes = 0;
  Digest index_digest;  // hash of the offsets, the lengths and the footer up to here
};
static_assert(sizeof(PairReport) == 7 * 8);
static_assert(sizeof(Footer) == 17 * 8);
static_assert(std::is_trivially_copyable_v<Footer>);
constexpr std::size_t kHashedFooterBytes = offsetof(Footer, index_digest);

constexpr std::uint64_t padded(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

std::array<std::byte, kHeaderBytes> header() {
  std::array<std::byte, kHeaderBytes> bytes{};
  std::memcpy(bytes.data(), kHeader.data(), kHeader.size());
  return bytes;
}

// A view of `count` values at byte `begin`, which must be a multiple of 8.
template <class T>
std::span<const T> values_at(std::span<const std::byte> bytes, std::uint64_t begin,
                             std::uint64_t count) {
  return {reinterpret_cast<const T*>(bytes.data() + begin), static_cast<std::size_t>(count)};
}

bool adds_up(const PairReport& report, std::uint64_t pairs) {
  std::int64_t remaining = report.lines;
  for (const std::int64_t count :
       {report.kept, report.cut, report.empty, report.too_long, report.unequal_lengths}) {
    if (count < 0 || count > remaining) return false;
    remaining -= count;
  }
  return remaining == 0 && static_cast<std::uint64_t>(report.kept) == pairs &&
         report.repaired >= 0 && report.repaired <= report.kept;
}

}  // namespace

PairReport& PairReport::operator+=(const PairReport& other) {
  lines += other.lines;
  kept += other.kept;
  cut += other.cut;
  empty += other.empty;
  too_long += other.too_long;
  unequal_lengths += other.unequal_lengths;
  repaired += other.repaired;
  return *this;
}

std::string to_text(const PairReport& report, const char* kept) {
  const auto count_text = [](std::int64_t count, const char* noun) {
    return grouped(count) + " " + noun + (count == 1 ? "" : "s");
  };
  std::string text =
      count_text(report.lines, "line") + ": " + count_text(report.kept, kept) + " kept";
  if (report.lines > report.kept) {
    std::string reasons;
    const auto add = [&](std::int64_t count, const char* reason) {
      if (count > 0) reasons += (reasons.empty() ? "" : ", ") + grouped(count) + " " + reason;
    };
    add(report.empty, "empty");
    add(report.too_long, "too long");
    add(report.unequal_lengths, "of too unequal lengths");
    add(report.cut, "over 1 MiB");
    text += ", " + grouped(report.lines - report.kept) + " left out (" + reasons + ")";
  }
  if (report.repaired > 0) {
    text += "; " + grouped(report.repaired) + " had invalid UTF-8, replaced by U+FFFD";
  }
  return text;
}

PairStore parse_pairs(std::span<const std::byte> bytes, const std::string& display_name) {
  const auto check = [&](bool holds, const char* problem) {
    if (!holds) throw Error(display_name + " is not a valid file of pairs: " + problem + ".");
  };
  check(bytes.size() >= kHeaderBytes + sizeof(std::uint64_t) + sizeof(Footer) &&
            bytes.size() % 8 == 0,
        "its size is wrong");
  const auto start = header();
  check(std::memcmp(bytes.data(), start.data(), start.size()) == 0, "its header is wrong");
  Footer footer;
  std::memcpy(&footer, bytes.data() + bytes.size() - sizeof footer, sizeof footer);
  check(footer.magic == kMagic, "its footer is wrong");
  // Checked before any multiplication, so that nothing can overflow.
  check(footer.pairs < bytes.size() && footer.tokens < bytes.size(), "its counts are wrong");
  const std::uint64_t offsets_begin = kHeaderBytes + padded(4 * footer.tokens);
  const std::uint64_t lengths_begin = offsets_begin + 8 * (footer.pairs + 1);
  const std::uint64_t footer_begin = lengths_begin + padded(4 * footer.pairs);
  check(footer.file_bytes == bytes.size() && footer_begin + sizeof footer == bytes.size(),
        "its counts do not match its size");
  const std::uint64_t hashed = footer_begin + kHashedFooterBytes - offsets_begin;
  check(ContentHash().update(bytes.subspan(offsets_begin, hashed)).digest() == footer.index_digest,
        "its index is damaged");
  check(adds_up(footer.report, footer.pairs), "its report does not add up");

  PairStore store;
  store.tokens_ = values_at<std::int32_t>(bytes, kHeaderBytes, footer.tokens);
  store.offsets_ = values_at<std::uint64_t>(bytes, offsets_begin, footer.pairs + 1);
  store.source_lengths_ = values_at<std::uint32_t>(bytes, lengths_begin, footer.pairs);
  store.key_ = footer.key;
  store.tokens_digest_ = footer.tokens_digest;
  store.report_ = footer.report;
  check(store.offsets_.front() == 0 && store.offsets_.back() == footer.tokens,
        "its pairs do not cover its tokens");
  for (std::size_t pair = 0; pair < store.source_lengths_.size(); ++pair) {
    const std::uint64_t begin = store.offsets_[pair], end = store.offsets_[pair + 1];
    check(begin <= end && end <= footer.tokens, "a pair begins after its end");
    // A source has at least one token and </s>; a target has at least one token.
    const std::uint32_t source = store.source_lengths_[pair];
    check(source < end - begin && source >= (store.has_sources() ? 2u : 0u),
          "a pair has an empty side");
    check(store.has_sources() || source == 0, "some of its pairs have no source");
  }
  return store;
}

PairStore PairStore::open(const std::filesystem::path& path) {
  MappedFile mapping(path);
  PairStore store = parse_pairs(mapping.bytes(), path.string());
  store.mapping_ = std::move(mapping);
  return store;
}

std::span<const std::int32_t> PairStore::source(std::int64_t pair) const {
  const auto index = static_cast<std::size_t>(pair);
  return tokens_.subspan(offsets_[index], source_lengths_[index]);
}

std::span<const std::int32_t> PairStore::target(std::int64_t pair) const {
  const auto index = static_cast<std::size_t>(pair);
  const std::uint64_t begin = offsets_[index] + source_lengths_[index];
  return tokens_.subspan(begin, offsets_[index + 1] - begin);
}

void PairStore::attach(FeatureStore features) {
  if (has_sources() || features.size() != size()) {
    throw Error(grouped(features.size()) + " examples of features cannot be the sources of " +
                grouped(size()) + (has_sources() ? " pairs that have sources." : " targets."));
  }
  features_ = std::move(features);
}

std::int64_t PairStore::source_length(std::int64_t pair) const {
  if (features_) return features_->rows(pair);
  return source_lengths_[static_cast<std::size_t>(pair)];
}

std::int64_t PairStore::target_length(std::int64_t pair) const {
  const auto index = static_cast<std::size_t>(pair);
  return static_cast<std::int64_t>(offsets_[index + 1] - offsets_[index] - source_lengths_[index]);
}

bool PairStore::tokens_are_intact() const {
  return ContentHash().update(std::as_bytes(tokens_)).digest() == tokens_digest_;
}

PairWriter::PairWriter(const std::filesystem::path& path, const Digest& key)
    : file_(path), key_(key) {
  const auto start = header();
  write(start);
}

void PairWriter::write(std::span<const std::byte> bytes) {
  file_.write(bytes);
  written_ += bytes.size();
}

void PairWriter::add(std::span<const std::int32_t> tokens, std::uint32_t source_length) {
  buffer_.insert(buffer_.end(), tokens.begin(), tokens.end());
  offsets_.push_back(offsets_.back() + tokens.size());
  source_lengths_.push_back(source_length);
  if (buffer_.size() >= kBufferedTokens) flush();
}

void PairWriter::flush() {
  const auto tokens = std::as_bytes(std::span(buffer_));
  tokens_hash_.update(tokens);
  write(tokens);
  buffer_.clear();
}

void PairWriter::commit(const PairReport& report) {
  const bool odd = offsets_.back() % 2 != 0;
  flush();
  if (odd) write(std::array<std::byte, 4>{});
  ContentHash index;
  source_lengths_.resize((source_lengths_.size() + 1) / 2 * 2, 0);
  for (const auto& section :
       {std::as_bytes(std::span(offsets_)), std::as_bytes(std::span(source_lengths_))}) {
    index.update(section);
    write(section);
  }
  Footer footer{.key = key_,
                .pairs = offsets_.size() - 1,
                .tokens = offsets_.back(),
                .report = report,
                .tokens_digest = tokens_hash_.digest(),
                .file_bytes = written_ + sizeof(Footer)};
  const auto bytes = std::as_bytes(std::span(&footer, 1));
  footer.index_digest = index.update(bytes.first(kHashedFooterBytes)).digest();
  write(bytes);
  file_.commit();
}

}  // namespace nunchi
