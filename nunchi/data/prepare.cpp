#include "nunchi/data/prepare.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "nunchi/base/atomic_file.h"
#include "nunchi/base/error.h"
#include "nunchi/data/byte_stream.h"
#include "nunchi/data/npy.h"
#include "nunchi/data/ordered_workers.h"
#include "nunchi/text/unicode.h"

namespace nunchi {
namespace {

namespace fs = std::filesystem;
using Stage = PrepareProgress::Stage;

// Increase this when the same input gives other pairs or another report than before.
constexpr std::uint64_t kVersion = 2;
// A thread tokenises a chunk of lines at a time.
constexpr std::size_t kChunkPairs = 2048;
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr std::size_t kChunksPerThread = 3;
constexpr int kMaxThreads = 256;

// Tells whether a file was written to or replaced between two checks.
struct FileStamp {
  std::int64_t device = 0, inode = 0, bytes = 0, seconds = 0, nanoseconds = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

FileStamp stamp_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    throw Error("cannot read " + path.string() + ": " + std::strerror(errno) + ".");
  }
  if (S_ISDIR(status.st_mode)) throw Error("cannot read " + path.string() + ": it is a folder.");
  if (!S_ISREG(status.st_mode)) {
    throw Error("cannot read " + path.string() +
                ": it is not a plain file, and a corpus is read twice.");
  }
  return {static_cast<std::int64_t>(status.st_dev), static_cast<std::int64_t>(status.st_ino),
          status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

// The files of a part, with stamps taken before the files are read.
class Inputs {
 public:
  explicit Inputs(const CorpusPart& part) : files_(files_of(part)) {
    for (const fs::path& file : files_) {
      stamps_.push_back(stamp_of(file));
      bytes_ += stamps_.back().bytes;
    }
  }

  std::span<const fs::path> files() const { return files_; }
  double fraction(std::int64_t bytes) const {
    return bytes_ == 0 ? 1
                       : std::min(1.0, static_cast<double>(bytes) / static_cast<double>(bytes_));
  }

  void check_unchanged() const {
    for (std::size_t i = 0; i < files_.size(); ++i) {
      if (stamp_of(files_[i]) != stamps_[i]) {
        throw Error(files_[i].string() + " changed while it was read; start again.");
      }
    }
  }

 private:
  std::vector<fs::path> files_;
  std::vector<FileStamp> stamps_;
  std::int64_t bytes_ = 0;
};

Digest digest_of(const Inputs& inputs, const PrepareOptions& options) {
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  ContentHash all_files;
  std::int64_t earlier_bytes = 0;
  for (const fs::path& path : inputs.files()) {
    const auto with_path_in_errors = [&](auto step) {
      try {
        return step();
      } catch (const Error& error) {
        throw Error("cannot read " + path.string() + ": " + error.what() + ".");
      }
    };
    const auto file = with_path_in_errors([&] { return open_raw(path); });
    ContentHash hash;
    while (const std::size_t got = with_path_in_errors([&] { return file->read(buffer); })) {
      hash.update(std::span<const std::byte>(buffer).first(got));
      if (options.progress) {
        options.progress({Stage::reading, inputs.fraction(earlier_bytes + file->consumed()), 0});
      }
    }
    earlier_bytes += file->consumed();
    all_files.update(hash.digest());
  }
  return all_files.digest();
}

// A hash of everything that the pairs depend on.
Digest key_of(const CorpusPart& part, const PairTokenizers& tokenizers,
              const PrepareOptions& options, const Digest& files) {
  const PairLimits& limits = options.limits;
  ContentHash key;
  key.update(kVersion).update(files);
  key.update(part.tsv.empty() ? 0 : static_cast<std::uint64_t>(part.source_column));
  key.update(part.tsv.empty() ? 0 : static_cast<std::uint64_t>(part.target_column));
  key.update(tokenizers.source.fingerprint()).update(tokenizers.target.fingerprint());
  key.update(static_cast<std::uint64_t>(tokenizers.source.special().end));
  key.update(static_cast<std::uint64_t>(limits.max_length));
  key.update(std::bit_cast<std::uint64_t>(limits.max_ratio));
  key.update(LineOptions{}.max_bytes);
  if (part.first_line > 1 || part.last_line > 0) {
    key.update(0x6C696E6573ull);  // "lines"; not in the key when all lines are used
    key.update(static_cast<std::uint64_t>(part.first_line));
    key.update(static_cast<std::uint64_t>(part.last_line));
  }
  if (!part.features.empty()) key.update(0x6665617475726573ull);  // "features"
  // "text": the same file read as pairs has another key.
  if (!part.text.empty()) {
    key.update(0x74657874ull).update(static_cast<std::uint64_t>(options.cut));
  }
  return key.digest();
}

struct Chunk {
  std::vector<RawPair> raw;
  Tokens tokens;  // all pairs in the layout that PairWriter expects
  std::vector<std::pair<std::uint32_t, std::uint32_t>> lengths;  // (of the pair, of its source)
  std::vector<Features> features;  // one for each pair; empty unless sources are features
  PairReport report;
  double fraction = 0;  // the part of the corpus read so far, this chunk included
};

void tokenize_pair(Chunk& chunk, const RawPair& pair, const PairTokenizers& tokenizers,
                   const PairLimits& limits) {
  const Tokens source = tokenizers.source.encode(pair.source);
  const Tokens target = tokenizers.target.encode(pair.target);
  const auto [shorter, longer] = std::minmax({source.size(), target.size()});
  if (shorter == 0) {
    ++chunk.report.empty;
  } else if (limits.max_length > 0 && longer + 1 > static_cast<std::size_t>(limits.max_length)) {
    ++chunk.report.too_long;
  } else if (limits.max_ratio > 0 &&
             static_cast<double>(longer) > limits.max_ratio * static_cast<double>(shorter)) {
    ++chunk.report.unequal_lengths;
  } else {
    ++chunk.report.kept;
    if (!is_valid_utf8(pair.source) || !is_valid_utf8(pair.target)) ++chunk.report.repaired;
    chunk.tokens.insert(chunk.tokens.end(), source.begin(), source.end());
    chunk.tokens.push_back(tokenizers.source.special().end);
    chunk.tokens.insert(chunk.tokens.end(), target.begin(), target.end());
    chunk.lengths.emplace_back(static_cast<std::uint32_t>(source.size() + 1 + target.size()),
                               static_cast<std::uint32_t>(source.size() + 1));
  }
}

void tokenize_line(Chunk& chunk, const std::string& line, const Tokenizer& tokenizer,
                   const PrepareOptions& options) {
  Tokens tokens = tokenizer.encode(line);
  const std::int64_t max_length = options.limits.max_length;
  if (options.cut == TextCut::windows) {
    tokens.push_back(tokenizer.line_end());
  } else if (tokens.empty()) {
    ++chunk.report.empty;
    return;
  } else if (max_length > 0 && tokens.size() + 1 > static_cast<std::size_t>(max_length)) {
    ++chunk.report.too_long;
    return;
  }
  ++chunk.report.kept;
  if (!is_valid_utf8(line)) ++chunk.report.repaired;
  chunk.tokens.insert(chunk.tokens.end(), tokens.begin(), tokens.end());
  chunk.lengths.emplace_back(static_cast<std::uint32_t>(tokens.size()), 0);
}

// Features and a line of the target. The limits apply to tokens; features may have any length.
void tokenize_target(Chunk& chunk, const RawPair& pair, const PairTokenizers& tokenizers,
                     const PairLimits& limits) {
  const Tokens target = tokenizers.target.encode(pair.target);
  if (target.empty()) {
    ++chunk.report.empty;
  } else if (limits.max_length > 0 &&
             target.size() + 1 > static_cast<std::size_t>(limits.max_length)) {
    ++chunk.report.too_long;
  } else {
    ++chunk.report.kept;
    if (!is_valid_utf8(pair.target)) ++chunk.report.repaired;
    chunk.features.push_back(read_npy(pair.features));
    chunk.tokens.insert(chunk.tokens.end(), target.begin(), target.end());
    chunk.lengths.emplace_back(static_cast<std::uint32_t>(target.size()), 0);
  }
}

void tokenize(Chunk& chunk, const CorpusPart& part, const PairTokenizers& tokenizers,
              const PrepareOptions& options) {
  for (const RawPair& pair : chunk.raw) {
    ++chunk.report.lines;
    if (pair.cut) {
      ++chunk.report.cut;
    } else if (!part.features.empty()) {
      tokenize_target(chunk, pair, tokenizers, options.limits);
    } else if (part.text.empty()) {
      tokenize_pair(chunk, pair, tokenizers, options.limits);
    } else {
      tokenize_line(chunk, pair.target, tokenizers.target, options);
    }
  }
  chunk.raw.clear();
}

// The next chunk; it is empty at the end of the corpus.
Chunk next_chunk(PairReader& reader, const Inputs& inputs) {
  Chunk chunk;
  std::size_t bytes = 0;
  RawPair pair;
  while (chunk.raw.size() < kChunkPairs && bytes < kChunkBytes && reader.next(pair)) {
    bytes += pair.source.size() + pair.target.size();
    chunk.raw.push_back(std::move(pair));
  }
  chunk.fraction = inputs.fraction(reader.consumed());
  return chunk;
}

// Writes the pairs of a part, one chunk after another.
class StoreWriter {
 public:
  // `features` is the path of the file of features, and `width` their width; 0 without features.
  StoreWriter(const fs::path& pairs, const fs::path& features, const Digest& key,
              std::int64_t width)
      : pairs_(pairs, key), width_(width) {
    if (width > 0) features_.emplace(features, key, width);
  }

  void add(const Chunk& chunk) {
    for (const Features& features : chunk.features) {
      if (features.width != width_) {
        throw Error("the files of features have " + std::to_string(width_) + " and " +
                    std::to_string(features.width) + " columns; all must have the same number.");
      }
      features_->add(features.values);
    }
    write_pairs(pairs_, chunk);
  }
  void commit(const PairReport& report) {
    if (features_) features_->commit();
    pairs_.commit(report);
  }

 private:
  static void write_pairs(PairWriter& writer, const Chunk& chunk) {
    std::span<const std::int32_t> tokens(chunk.tokens);
    for (const auto& [length, source_length] : chunk.lengths) {
      writer.add(tokens.first(length), source_length);
      tokens = tokens.subspan(length);
    }
  }

  PairWriter pairs_;
  std::optional<FeatureWriter> features_;
  std::int64_t width_;
};

PairReport tokenize_all(const CorpusPart& part, const PairTokenizers& tokenizers,
                        const PrepareOptions& options, const Inputs& inputs, StoreWriter& writer) {
  const int threads = std::clamp(options.threads, 1, kMaxThreads);
  PairReader reader(part);
  PairReport report;
  OrderedWorkers<Chunk> workers(threads,
                                [&](Chunk& chunk) { tokenize(chunk, part, tokenizers, options); });
  const std::size_t max_pending = kChunksPerThread * static_cast<std::size_t>(threads);
  bool more = true;
  while (more || workers.pending() > 0) {
    while (more && workers.pending() < max_pending) {
      Chunk chunk = next_chunk(reader, inputs);
      more = !chunk.raw.empty();
      if (more) workers.submit(std::move(chunk));
    }
    if (workers.pending() == 0) break;
    const Chunk done = workers.take();
    writer.add(done);
    report += done.report;
    if (options.progress) options.progress({Stage::tokenizing, done.fraction, report.lines});
  }
  return report;
}

// The cached store, if it exists and is intact. `features` is empty without features.
std::optional<PairStore> open_cached(const fs::path& path, const fs::path& features,
                                     const Digest& key) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  try {
    PairStore store = PairStore::open(path);
    if (store.key() != key || !store.tokens_are_intact()) return std::nullopt;
    if (!features.empty()) {
      FeatureStore feature_store = FeatureStore::open(features);
      if (feature_store.key() != key || !feature_store.values_are_intact()) return std::nullopt;
      store.attach(std::move(feature_store));
    }
    return store;
  } catch (const Error&) {
    // Damaged, unreadable or written by an earlier version: the caller writes it again.
  }
  return std::nullopt;
}

void check(const PrepareOptions& options) {
  if (options.cache.empty()) throw UsageError("tokenised pairs need a cache folder.");
  if (options.limits.max_length < 0) throw UsageError("data.max_length cannot be negative.");
  const double ratio = options.limits.max_ratio;
  if (!std::isfinite(ratio) || ratio < 0 || (ratio > 0 && ratio < 1)) {
    throw UsageError("data.max_ratio must be 1 or more, or 0 for no limit.");
  }
}

}  // namespace

std::int64_t feature_width(const CorpusPart& part) {
  return part.features.empty() ? 0 : read_npy(files_of(part).front()).width;
}

PairStore prepare_pairs(const CorpusPart& part, const PairTokenizers& tokenizers,
                        const PrepareOptions& options) {
  check(options);
  const Inputs inputs(part);
  const Digest key = key_of(part, tokenizers, options, digest_of(inputs, options));
  const fs::path path = options.cache / ("pairs-" + key.hex() + ".bin");
  const fs::path features =
      part.features.empty() ? fs::path() : options.cache / ("features-" + key.hex() + ".bin");
  if (auto store = open_cached(path, features, key)) return std::move(*store);
  std::error_code failed;
  fs::create_directories(options.cache, failed);
  if (failed) {
    throw Error("cannot make the folder " + options.cache.string() + ": " + failed.message() + ".");
  }
  remove_abandoned_files(options.cache);
  StoreWriter writer(path, features, key, feature_width(part));
  const PairReport report = tokenize_all(part, tokenizers, options, inputs, writer);
  // Makes sure that the tokenised bytes are the hashed ones.
  inputs.check_unchanged();
  writer.commit(report);
  PairStore store = PairStore::open(path);
  if (!features.empty()) store.attach(FeatureStore::open(features));
  return store;
}

std::vector<PairStore> prepare_pairs(std::span<const CorpusPart> parts,
                                     const PairTokenizers& tokenizers,
                                     const PrepareOptions& options) {
  std::vector<PairStore> stores;
  for (const CorpusPart& part : parts) stores.push_back(prepare_pairs(part, tokenizers, options));
  return stores;
}

}  // namespace nunchi
