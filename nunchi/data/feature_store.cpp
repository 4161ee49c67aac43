#include "nunchi/data/feature_store.h"

#include <utility>

namespace nunchi {
namespace {

constexpr HashedFormat kFormat = {.contents = "features", .header = "nunchi features 1\n"};

// Only fields of 8 bytes, so that there is no padding.
struct Footer {
  std::uint64_t magic = 0x31'54'41'45'46'4E'4E'4Eull;  // "NNNFEAT1"
  Digest key;
  std::uint64_t examples = 0;
  std::uint64_t rows = 0;
  std::uint64_t width = 0;
  Digest values_digest;
  std::uint64_t file_bytes = 0;
  Digest index_digest;  // hash of the first-row table and of the footer up to here
};
static_assert(sizeof(Footer) == 11 * 8);

}  // namespace

FeatureStore::FeatureStore(RandomAccessFile file) {
  HashedFileReader reader(file, kFormat);
  const auto check = [&](bool holds, const char* problem) { reader.check(holds, problem); };
  const auto footer = reader.footer<Footer>();
  // Checked before any multiplication, so that nothing can overflow.
  const std::uint64_t max_count = file.size();
  check(footer.examples < max_count && footer.rows < max_count && footer.width > 0 &&
            footer.width < max_count && footer.rows <= max_count / footer.width,
        "its counts are wrong");
  const std::uint64_t value_bytes = 4 * footer.rows * footer.width;
  const std::uint64_t rows_begin = HashedFormat::kHeaderBytes + padded_to_8(value_bytes);
  reader.check_size(footer, rows_begin + 8 * (footer.examples + 1));
  first_rows_ = reader.table<std::uint64_t>(rows_begin, footer.examples + 1);
  reader.check_index(footer);
  width_ = static_cast<std::int64_t>(footer.width);
  key_ = footer.key;
  check(first_rows_.front() == 0 && first_rows_.back() == footer.rows,
        "its examples do not cover its rows");
  for (std::size_t i = 0; i + 1 < first_rows_.size(); ++i) {
    check(first_rows_[i] < first_rows_[i + 1], "an example has no rows");
  }
  values_.emplace(std::move(file), value_bytes, footer.values_digest);
}

FeatureStore FeatureStore::open(const std::filesystem::path& path) {
  return FeatureStore(RandomAccessFile(path));
}

std::int64_t FeatureStore::rows(std::int64_t example) const {
  const auto index = static_cast<std::size_t>(example);
  return static_cast<std::int64_t>(first_rows_[index + 1] - first_rows_[index]);
}

std::vector<float> FeatureStore::values(std::int64_t example) const {
  std::vector<float> values(static_cast<std::size_t>(rows(example) * width_));
  const std::uint64_t first_row = first_rows_[static_cast<std::size_t>(example)];
  values_->read(first_row * static_cast<std::uint64_t>(width_), std::span(values));
  return values;
}

FeatureWriter::FeatureWriter(const std::filesystem::path& path, const Digest& key,
                             std::int64_t width)
    : file_(path, kFormat), key_(key), width_(static_cast<std::uint64_t>(width)) {}

void FeatureWriter::add(std::span<const float> values) {
  file_.write_values(std::as_bytes(values));
  first_rows_.push_back(first_rows_.back() + values.size() / width_);
}

void FeatureWriter::commit() {
  file_.write_index(std::as_bytes(std::span(first_rows_)));
  file_.commit(Footer{.key = key_,
                      .examples = first_rows_.size() - 1,
                      .rows = first_rows_.back(),
                      .width = width_});
}

}  // namespace nunchi
