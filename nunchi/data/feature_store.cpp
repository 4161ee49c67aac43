#include "nunchi/data/feature_store.h"

#include <array>
#include <bit>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is mapped as it is");

constexpr std::size_t kHeaderBytes = 64;
constexpr std::string_view kHeader = "nunchi features 1\n";
constexpr std::uint64_t kMagic = 0x31'54'41'45'46'4E'4E'4Eull;  // "NNNFEAT1"

// Only fields of 8 bytes, so that there is no padding.
struct Footer {
  std::uint64_t magic = kMagic;
  Digest key;
  std::uint64_t examples = 0;
  std::uint64_t rows = 0;
  std::uint64_t width = 0;
  Digest values_digest;
  std::uint64_t file_bytes = 0;
  Digest index_digest;  // hash of the first-row table and of the footer up to here
};
static_assert(sizeof(Footer) == 11 * 8);
static_assert(std::is_trivially_copyable_v<Footer>);
constexpr std::size_t kHashedFooterBytes = offsetof(Footer, index_digest);

constexpr std::uint64_t padded(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

std::array<std::byte, kHeaderBytes> header() {
  std::array<std::byte, kHeaderBytes> bytes{};
  std::memcpy(bytes.data(), kHeader.data(), kHeader.size());
  return bytes;
}

}  // namespace

FeatureStore parse_features(std::span<const std::byte> bytes, const std::string& display_name) {
  const auto check = [&](bool holds, const char* problem) {
    if (!holds) throw Error(display_name + " is not a valid file of features: " + problem + ".");
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
  const std::uint64_t max_count = bytes.size();
  check(footer.examples < max_count && footer.rows < max_count && footer.width > 0 &&
            footer.width < max_count && footer.rows <= max_count / footer.width,
        "its counts are wrong");
  const std::uint64_t rows_begin = kHeaderBytes + padded(4 * footer.rows * footer.width);
  const std::uint64_t footer_begin = rows_begin + 8 * (footer.examples + 1);
  check(footer.file_bytes == bytes.size() && footer_begin + sizeof footer == bytes.size(),
        "its counts do not match its size");
  const std::uint64_t hashed = footer_begin + kHashedFooterBytes - rows_begin;
  check(ContentHash().update(bytes.subspan(rows_begin, hashed)).digest() == footer.index_digest,
        "its index is damaged");

  FeatureStore store;
  store.values_ = {reinterpret_cast<const float*>(bytes.data() + kHeaderBytes),
                   static_cast<std::size_t>(footer.rows * footer.width)};
  store.first_rows_ = {reinterpret_cast<const std::uint64_t*>(bytes.data() + rows_begin),
                       static_cast<std::size_t>(footer.examples + 1)};
  store.width_ = static_cast<std::int64_t>(footer.width);
  store.key_ = footer.key;
  store.values_digest_ = footer.values_digest;
  check(store.first_rows_.front() == 0 && store.first_rows_.back() == footer.rows,
        "its examples do not cover its rows");
  for (std::size_t i = 0; i + 1 < store.first_rows_.size(); ++i) {
    check(store.first_rows_[i] < store.first_rows_[i + 1], "an example has no rows");
  }
  return store;
}

FeatureStore FeatureStore::open(const std::filesystem::path& path) {
  MappedFile mapping(path);
  FeatureStore store = parse_features(mapping.bytes(), path.string());
  store.mapping_ = std::move(mapping);
  return store;
}

std::int64_t FeatureStore::rows(std::int64_t example) const {
  const auto index = static_cast<std::size_t>(example);
  return static_cast<std::int64_t>(first_rows_[index + 1] - first_rows_[index]);
}

std::span<const float> FeatureStore::values(std::int64_t example) const {
  const auto begin = first_rows_[static_cast<std::size_t>(example)];
  return values_.subspan(static_cast<std::size_t>(begin) * static_cast<std::size_t>(width_),
                         static_cast<std::size_t>(rows(example) * width_));
}

bool FeatureStore::values_are_intact() const {
  return ContentHash().update(std::as_bytes(values_)).digest() == values_digest_;
}

FeatureWriter::FeatureWriter(const std::filesystem::path& path, const Digest& key,
                             std::int64_t width)
    : file_(path), key_(key), width_(static_cast<std::uint64_t>(width)) {
  const auto start = header();
  write(start);
}

void FeatureWriter::write(std::span<const std::byte> bytes) {
  file_.write(bytes);
  written_ += bytes.size();
}

void FeatureWriter::add(std::span<const float> values) {
  const auto bytes = std::as_bytes(values);
  values_hash_.update(bytes);
  write(bytes);
  first_rows_.push_back(first_rows_.back() + values.size() / width_);
}

void FeatureWriter::commit() {
  const std::array<std::byte, 8> zeros{};
  write(std::span(zeros).first(padded(written_) - written_));
  ContentHash index;
  const auto first_rows = std::as_bytes(std::span(first_rows_));
  index.update(first_rows);
  write(first_rows);
  Footer footer{.key = key_,
                .examples = first_rows_.size() - 1,
                .rows = first_rows_.back(),
                .width = width_,
                .values_digest = values_hash_.digest(),
                .file_bytes = written_ + sizeof(Footer)};
  const auto bytes = std::as_bytes(std::span(&footer, 1));
  footer.index_digest = index.update(bytes.first(kHashedFooterBytes)).digest();
  write(bytes);
  file_.commit();
}

}  // namespace nunchi
