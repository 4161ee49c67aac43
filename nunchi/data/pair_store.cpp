#include "nunchi/data/pair_store.h"

#include <utility>

#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"

namespace nunchi {
namespace {

constexpr HashedFormat kFormat = {.contents = "pairs", .header = "nunchi pairs 2\n"};
constexpr std::size_t kBufferedTokens = std::size_t{1} << 16;

// Only fields of 8 bytes, so that there is no padding.
struct Footer {
  std::uint64_t magic = 0x32'53'52'49'41'50'4E'4Eull;  // "NNPAIRS2"
  Digest key;
  std::uint64_t pairs = 0;
  std::uint64_t tokens = 0;
  PairReport report;
  Digest values_digest;  // of the tokens
  std::uint64_t file_bytes = 0;
  Digest index_digest;  // hash of the offsets, the lengths and the footer up to here
};
static_assert(sizeof(PairReport) == 7 * 8);
static_assert(sizeof(Footer) == 17 * 8);
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

PairStore::PairStore(RandomAccessFile file) {
  HashedFileReader reader(file, kFormat);
  const auto check = [&](bool holds, const char* problem) { reader.check(holds, problem); };
  const auto footer = reader.footer<Footer>();
  // Checked before any multiplication, so that nothing can overflow.
  check(footer.pairs < file.size() && footer.tokens < file.size(), "its counts are wrong");
  const std::uint64_t offsets_begin = HashedFormat::kHeaderBytes + padded_to_8(4 * footer.tokens);
  const std::uint64_t lengths_begin = offsets_begin + 8 * (footer.pairs + 1);
  const std::uint64_t footer_begin = lengths_begin + padded_to_8(4 * footer.pairs);
  reader.check_size(footer, footer_begin);
  offsets_ = reader.table<std::uint64_t>(offsets_begin, footer.pairs + 1);
  source_lengths_ = reader.table<std::uint32_t>(lengths_begin, footer.pairs);
  reader.check_index(footer);
  check(adds_up(footer.report, footer.pairs), "its report does not add up");
  key_ = footer.key;
  report_ = footer.report;
  check(offsets_.front() == 0 && offsets_.back() == footer.tokens,
        "its pairs do not cover its tokens");
  for (std::size_t pair = 0; pair < source_lengths_.size(); ++pair) {
    const std::uint64_t begin = offsets_[pair], end = offsets_[pair + 1];
    check(begin <= end && end <= footer.tokens, "a pair begins after its end");
    // A source has at least one token and </s>; a target has at least one token.
    const std::uint32_t source = source_lengths_[pair];
    check(source < end - begin && source >= (has_sources() ? 2u : 0u), "a pair has an empty side");
    check(has_sources() || source == 0, "some of its pairs have no source");
  }
  tokens_.emplace(std::move(file), 4 * footer.tokens, footer.values_digest);
}

PairStore PairStore::open(const std::filesystem::path& path) {
  return PairStore(RandomAccessFile(path));
}

PairTokens PairStore::read(std::int64_t pair, Tokens& buffer) const {
  const auto index = static_cast<std::size_t>(pair);
  buffer.resize(static_cast<std::size_t>(offsets_[index + 1] - offsets_[index]));
  tokens_->read(offsets_[index], std::span(buffer));
  const auto tokens = std::span<const std::int32_t>(buffer);
  return {tokens.first(source_lengths_[index]), tokens.subspan(source_lengths_[index])};
}

Tokens PairStore::source(std::int64_t pair) const {
  Tokens buffer;
  const auto source = read(pair, buffer).source;
  return {source.begin(), source.end()};
}

Tokens PairStore::target(std::int64_t pair) const {
  Tokens buffer;
  const auto target = read(pair, buffer).target;
  return {target.begin(), target.end()};
}

void PairStore::read_text(std::int64_t first, std::span<std::int32_t> into) const {
  tokens_->read(static_cast<std::uint64_t>(first), into);
}

void PairStore::check_intact() const {
  tokens_->check_intact();
  if (features_) features_->check_intact();
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

PairWriter::PairWriter(const std::filesystem::path& path, const Digest& key)
    : file_(path, kFormat), key_(key) {}

void PairWriter::add(std::span<const std::int32_t> tokens, std::uint32_t source_length) {
  buffer_.insert(buffer_.end(), tokens.begin(), tokens.end());
  offsets_.push_back(offsets_.back() + tokens.size());
  source_lengths_.push_back(source_length);
  if (buffer_.size() >= kBufferedTokens) flush();
}

void PairWriter::flush() {
  file_.write_values(std::as_bytes(std::span(buffer_)));
  buffer_.clear();
}

void PairWriter::commit(const PairReport& report) {
  flush();
  file_.write_index(std::as_bytes(std::span(offsets_)));
  source_lengths_.resize((source_lengths_.size() + 1) / 2 * 2, 0);
  file_.write_index(std::as_bytes(std::span(source_lengths_)));
  file_.commit(Footer{
      .key = key_, .pairs = offsets_.size() - 1, .tokens = offsets_.back(), .report = report});
}

}  // namespace nunchi
