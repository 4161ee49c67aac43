#include "nunchi/data/corpus.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"

namespace nunchi {
namespace {

// The column with this number, counted from 1; nullopt when the line has fewer columns.
std::optional<std::string_view> column_of(std::string_view line, int number) {
  for (; number > 1; --number) {
    const std::size_t tab = line.find('\t');
    if (tab == line.npos) return std::nullopt;
    line.remove_prefix(tab + 1);
  }
  return line.substr(0, line.find('\t'));
}

std::string column_count(std::int64_t count) {
  return grouped(count) + (count == 1 ? " column" : " columns");
}

// For messages: "train.de has 1 line".
std::string line_count(const LineReader& reader) {
  const std::int64_t lines = reader.line_number();
  return reader.path().string() + " has " + grouped(lines) + (lines == 1 ? " line" : " lines");
}

// The .npy files of a folder, in the order of their names.
std::vector<std::filesystem::path> feature_files(const std::filesystem::path& folder) {
  std::error_code failure;
  std::vector<std::filesystem::path> files;
  for (std::filesystem::directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    if (entry->path().extension() == ".npy") files.push_back(entry->path());
  }
  if (failure) throw Error("cannot read " + folder.string() + ": " + failure.message() + ".");
  if (files.empty()) throw Error(folder.string() + " has no features: it contains no .npy files.");
  std::ranges::sort(files);
  return files;
}

std::vector<std::filesystem::path> features_of(const CorpusPart& part) {
  return part.features.empty() ? std::vector<std::filesystem::path>()
                               : feature_files(part.features);
}

// The file that PairReader::first_ reads.
std::filesystem::path first_file(const CorpusPart& part) {
  return part.features.empty() ? files_of(part).front() : part.target;
}

}  // namespace

std::vector<std::filesystem::path> files_of(const CorpusPart& part) {
  if (!part.features.empty()) {
    if (!part.source.empty() || !part.tsv.empty() || !part.text.empty() || part.target.empty()) {
      throw UsageError("a part of a corpus with features (" + part.features.string() +
                       ") must have a target, and no source, tsv or text.");
    }
    std::vector<std::filesystem::path> files = feature_files(part.features);
    files.push_back(part.target);
    return files;
  }
  if (!part.text.empty()) {
    if (!part.source.empty() || !part.target.empty() || !part.tsv.empty()) {
      throw UsageError("a part of a corpus must be either a text or pairs, but " +
                       part.text.string() + " is given together with another file.");
    }
    return {part.text};
  }
  if (!part.tsv.empty()) {
    if (!part.source.empty() || !part.target.empty()) {
      throw UsageError("a part of a corpus must be either a source and a target, or a tsv, but " +
                       part.tsv.string() + " is given together with another file.");
    }
    if (part.source_column < 1 || part.target_column < 1) {
      throw UsageError("the column numbers of " + part.tsv.string() + " must be at least 1.");
    }
    return {part.tsv};
  }
  if (part.source.empty() || part.target.empty()) {
    const auto& given_path = part.source.empty() ? part.target : part.source;
    throw UsageError(given_path.empty()
                         ? "a part of a corpus needs a source and a target, or a tsv."
                         : "a part of a corpus needs a source and a target; only " +
                               given_path.string() + " is given.");
  }
  return {part.source, part.target};
}

std::string names_of(std::span<const CorpusPart> parts) {
  std::string names;
  for (const CorpusPart& part : parts) {
    const std::vector<std::filesystem::path> files =
        part.features.empty() ? files_of(part) : std::vector{part.features, part.target};
    for (const std::filesystem::path& file : files) {
      names += (names.empty() ? "" : ", ") + file.string();
    }
  }
  return names;
}

PairReader::PairReader(const CorpusPart& part)
    : features_(features_of(part)),
      first_(first_file(part)),
      first_line_(part.first_line),
      last_line_(part.last_line),
      is_text_(!part.text.empty()),
      source_column_(part.source_column),
      target_column_(part.target_column) {
  if (!part.target.empty() && part.features.empty()) second_.emplace(part.target);
}

bool PairReader::next(RawPair& pair) {
  while (line_number() + 1 < first_line_) {
    if (next_line(pair)) continue;
    throw Error(line_count(first_) + ", but 'first_line' is " + grouped(first_line_) + ".");
  }
  return (last_line_ == 0 || line_number() < last_line_) && next_line(pair);
}

bool PairReader::next_line(RawPair& pair) {
  if (!features_.empty()) return next_from_features(pair);
  if (second_) return next_from_two_files(pair);
  return is_text_ ? next_from_text(pair) : next_from_tsv(pair);
}

std::int64_t PairReader::consumed() const {
  return first_.consumed() + (second_ ? second_->consumed() : 0);
}

bool PairReader::next_from_two_files(RawPair& pair) {
  const bool more_source = first_.next(pair.source);
  const bool more_target = second_->next(pair.target);
  if (more_source != more_target) fail_unequal();
  pair.cut = first_.was_cut() || second_->was_cut();
  if (one_sided_line_ == 0 && pair.source.empty() != pair.target.empty()) {
    one_sided_line_ = first_.line_number();
    source_is_empty_ = pair.source.empty();
  }
  return more_source;
}

bool PairReader::next_from_tsv(RawPair& pair) {
  pair.source.clear();
  pair.target.clear();
  if (!first_.next(line_)) return false;
  pair.cut = first_.was_cut();
  if (pair.cut || line_.empty()) return true;
  for (const auto& [number, text] :
       {std::pair(source_column_, &pair.source), std::pair(target_column_, &pair.target)}) {
    const auto column = column_of(line_, number);
    if (!column) {
      const auto tabs = std::count(line_.begin(), line_.end(), '\t');
      throw Error(first_.path().string() + ":" + std::to_string(first_.line_number()) + ": " +
                  column_count(tabs + 1) + ", but column " + std::to_string(number) +
                  " is needed. Columns are separated by tabs.");
    }
    text->assign(*column);
  }
  return true;
}

bool PairReader::next_from_text(RawPair& pair) {
  pair.source.clear();
  const bool more = first_.next(pair.target);
  pair.cut = first_.was_cut();
  return more;
}

bool PairReader::next_from_features(RawPair& pair) {
  const bool more = first_.next(pair.target);
  const auto number = static_cast<std::size_t>(first_.line_number());
  if (more ? number > features_.size() : number < features_.size()) {
    while (first_.next(line_)) {
    }
    throw Error(line_count(first_) + " but " + features_.front().parent_path().string() + " has " +
                grouped(std::ssize(features_)) +
                " files of features. A pair needs one line and one file.");
  }
  if (!more) return false;
  pair.source.clear();
  pair.features = features_[number - 1];
  pair.cut = first_.was_cut();
  return true;
}

void PairReader::fail_unequal() {
  while (first_.next(line_)) {
  }
  while (second_->next(line_)) {
  }
  std::string message = line_count(*second_) + " but " + first_.path().string() + " has " +
                        grouped(first_.line_number()) + ". A pair needs one line on each side; ";
  if (one_sided_line_ > 0) {
    message += "the first difference is ";
    message += one_sided_line_ == 1 ? "line 1" : "after line " + grouped(one_sided_line_ - 1);
    message +=
        " (an empty line in " + (source_is_empty_ ? first_ : *second_).path().string() + "?).";
  } else {
    message += "look for a line that was split, joined or lost.";
  }
  throw Error(message);
}

}  // namespace nunchi
