#include "nunchi/text/learn_tokenizer.h"

#include <fmt/format.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "nunchi/base/child_process.h"
#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"
#include "nunchi/base/interrupted.h"
#include "nunchi/base/printable.h"
#include "nunchi/base/random.h"
#include "nunchi/text/plain_tokenizer.h"
#include "nunchi/text/sentencepiece_check.h"
#include "nunchi/text/sentencepiece_library.h"
#include "nunchi/text/unicode.h"

namespace nunchi {
namespace {

// The unigram trainer multiplies the number of characters by 16, the longest piece, in 31 bits, and
// needs 20 bytes of memory for each byte of text.
constexpr std::size_t kMaxBytes = std::size_t{120} << 20;
// The BPE trainer aborts the process at a word of 65,536 characters.
constexpr std::size_t kMaxLineBytes = 4096;
constexpr std::size_t kMaxSymbolBytes = 256;
// Fixed, because the trainer's floating-point sums depend on the number of threads.
constexpr const char* kTrainerThreads = "8";

constexpr char32_t kSpaceMark = U'\u2581';    // a space inside pieces
constexpr char32_t kUnknownMark = U'\u2585';  // the trainer drops lines that have it

[[noreturn]] void refuse_symbol(const std::string& symbol, const char* why) {
  throw UsageError(fmt::format("the symbol '{}' {}.", printable(symbol), why));
}

bool is_separator(char32_t character) {
  return character <= U' ' || character == 0x7F || character == kSpaceMark ||
         character == kUnknownMark;
}

void check_symbol(const std::string& symbol) {
  if (symbol.empty()) throw UsageError("a symbol is empty.");
  if (symbol.size() > kMaxSymbolBytes) refuse_symbol(symbol, "is longer than 256 bytes");
  if (!is_valid_utf8(symbol)) refuse_symbol(symbol, "is not UTF-8");
  if (symbol == "<s>" || symbol == "</s>" || symbol == "<unk>") {
    refuse_symbol(symbol, "already exists, and text must not be encoded as it");
  }
  if (symbol.size() == 6 && symbol.starts_with("<0x") && symbol.ends_with('>')) {
    refuse_symbol(symbol, "looks like the piece of a byte");
  }
  for (std::string_view rest = symbol; !rest.empty();) {
    if (is_separator(take_character(rest)))
      refuse_symbol(symbol, "has a space or control character");
  }
}

std::vector<std::string> checked_symbols(const TokenizerOptions& options) {
  std::vector<std::string> symbols;
  for (const std::string& given : options.symbols) {
    check_symbol(given);
    if (given == "<pad>" && options.special.pad != kNoToken) {
      refuse_symbol(given, "already exists, and text must not be encoded as it");
    }
    symbols.push_back(nfc(given));
    if (std::count(symbols.begin(), symbols.end(), symbols.back()) > 1) {
      refuse_symbol(given, "is given twice");
    }
  }
  if (max_nesting({symbols.begin(), symbols.end()}) > kMaxNestedSymbols) {
    throw UsageError("more than 64 symbols are prefixes of one another.");
  }
  return symbols;
}

void check_options(const TokenizerOptions& options) {
  constexpr std::int64_t kMaxVocabulary = 1 << 24;
  if (options.vocabulary < 4 || options.vocabulary > kMaxVocabulary) {
    throw UsageError(fmt::format("a vocabulary must have 4 to 16,777,216 tokens, not {}.",
                                 grouped(options.vocabulary)));
  }
  if (!(options.character_coverage >= 0.98 && options.character_coverage <= 1)) {
    throw UsageError(fmt::format("the character coverage must be from 0.98 to 1, not {}.",
                                 options.character_coverage));
  }
  if (options.max_lines < 1) throw UsageError("max_lines must be at least 1.");
}

// Throws UsageError unless the special tokens have distinct ids in the vocabulary. Returns the
// number of special tokens.
std::int64_t check_special(const TokenizerOptions& options) {
  const SpecialTokens& special = options.special;
  std::vector<std::int32_t> ids;
  for (const std::int32_t id : {special.unknown, special.begin, special.end, special.pad}) {
    if (id == kNoToken) continue;
    if (id < 0 || id >= options.vocabulary || std::ranges::find(ids, id) != ids.end()) {
      throw UsageError(
          fmt::format("special tokens must have different ids in the vocabulary of {}; {} is "
                      "outside of it or used twice.",
                      grouped(options.vocabulary), id));
    }
    ids.push_back(id);
  }
  if (special.unknown == kNoToken || special.end == kNoToken) {
    throw UsageError("a tokenizer needs tokens for unknown text and for the end of a sentence.");
  }
  return std::ssize(ids);
}

// A line as the trainer accepts it: one space between words, none elsewhere, and no characters that
// the trainer cannot handle.
std::string clean_line(std::string_view line) {
  const std::string text = nfc(repaired_utf8(line));
  std::string words;
  words.reserve(text.size());
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view from = rest;
    if (!is_separator(take_character(rest))) {
      words += from.substr(0, from.size() - rest.size());
    } else if (!words.empty() && words.back() != ' ') {
      words += ' ';
    }
  }
  if (words.ends_with(' ')) words.pop_back();
  return words;
}

// Where to cut a long line: before a space or, without one, between two characters.
std::size_t cut_position(std::string_view line) {
  if (line.size() <= kMaxLineBytes) return line.size();
  const std::size_t space = line.rfind(' ', kMaxLineBytes);
  if (space != line.npos && space > 0) return space;
  std::size_t cut = kMaxLineBytes;
  while ((static_cast<unsigned char>(line[cut]) & 0xC0) == 0x80) --cut;
  return cut;
}

// A random sample of limited size: lines, long ones cut into several chunks. Each chunk has a
// random number that depends only on its position. When there are too many chunks, those with a
// number in the upper half of the allowed range are dropped, and the range is halved.
class Sample {
 public:
  explicit Sample(std::int64_t max_lines) : max_lines_(static_cast<std::size_t>(max_lines)) {}

  void add(std::int64_t line, std::string_view words) {
    for (std::uint32_t chunk = 0; !words.empty(); ++chunk) {
      const std::size_t length = cut_position(words);
      add_chunk(line, chunk, words.substr(0, length));
      words.remove_prefix(length);
    }
  }

  std::size_t size() const { return chunks_.size(); }
  std::string take(std::size_t index) { return std::move(chunks_[index].text); }
  std::int64_t line_of(std::size_t index) const { return chunks_[index].line; }

  // The number of lines of which at least one chunk is kept.
  std::int64_t line_count() const {
    std::int64_t count = 0, last = -1;
    for (const Chunk& chunk : chunks_) {
      if (chunk.line != last) ++count;
      last = chunk.line;
    }
    return count;
  }

 private:
  struct Chunk {
    std::int64_t line;
    std::uint32_t number;
    std::string text;
  };

  void add_chunk(std::int64_t line, std::uint32_t index, std::string_view text) {
    constexpr philox::Key kKey = philox::key_of({.seed = 0x746F6B656E});
    const auto low = static_cast<std::uint32_t>(line),
               high = static_cast<std::uint32_t>(line >> 32);
    const std::uint32_t number = philox::bits({low, high, index, 0}, kKey)[0];
    if (number > max_number_) return;
    chunks_.push_back({line, number, std::string(text)});
    bytes_ += text.size();
    while (chunks_.size() > max_lines_ || bytes_ > kMaxBytes) shrink();
  }

  void shrink() {
    max_number_ /= 2;
    std::erase_if(chunks_, [&](const Chunk& chunk) { return chunk.number > max_number_; });
    bytes_ = 0;
    for (const Chunk& chunk : chunks_) bytes_ += chunk.text.size();
  }

  std::size_t max_lines_;
  std::size_t bytes_ = 0;
  std::uint32_t max_number_ = std::numeric_limits<std::uint32_t>::max();
  std::vector<Chunk> chunks_;
};

constexpr std::string_view kCountedLines = "counted lines: ";

// Passes the sample to the trainer and frees each chunk after reading it. With a log, writes to
// stderr from time to time how many lines it has passed.
class SampleIterator final : public sentencepiece::SentenceIterator {
 public:
  SampleIterator(Sample& sample, bool with_log) : sample_(sample), with_log_(with_log) { Next(); }

  bool done() const override { return done_; }
  const std::string& value() const override { return text_; }
  sentencepiece::util::Status status() const override { return {}; }

  void Next() override {
    constexpr std::size_t kChunksPerReport = 8192;
    done_ = next_ == sample_.size();
    if (done_) return;
    if (with_log_ && next_ % kChunksPerReport == 0) {
      fmt::print(stderr, "{}{}\n", kCountedLines, sample_.line_of(next_));
    }
    text_ = sample_.take(next_++);
  }

 private:
  Sample& sample_;
  bool with_log_;
  std::size_t next_ = 0;
  std::string text_;
  bool done_ = false;
};

// The trainer reads lists as comma-separated values.
std::string quoted_list(const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values) {
    if (!list.empty()) list += ',';
    list += '"';
    for (const char c : value) list.append(c == '"' ? 2 : 1, c);
    list += '"';
  }
  return list;
}

std::unordered_map<std::string, std::string> settings_of(const TokenizerOptions& options,
                                                         const std::vector<std::string>& symbols) {
  const auto flag = [](bool value) { return value ? "true" : "false"; };
  std::unordered_map<std::string, std::string> settings{
      {"model_type", options.kind == TokenizerKind::bpe ? "bpe" : "unigram"},
      {"vocab_size", std::to_string(options.vocabulary)},
      {"byte_fallback", flag(options.byte_fallback)},
      {"character_coverage", fmt::format("{}", options.character_coverage)},
      {"split_digits", flag(options.split_digits)},
      {"normalization_rule_name", "identity"},
      {"max_sentence_length", std::to_string(kMaxLineBytes)},
      {"num_threads", kTrainerThreads},
      {"unk_id", std::to_string(options.special.unknown)},
      {"bos_id", std::to_string(options.special.begin)},
      {"eos_id", std::to_string(options.special.end)},
      {"pad_id", std::to_string(options.special.pad)}};
  if (!symbols.empty()) settings["user_defined_symbols"] = quoted_list(symbols);
  return settings;
}

// The number that follows `words` in the library's message; 0 when there is none.
std::int64_t number_after(std::string_view message, std::string_view words) {
  const std::size_t found = message.find(words);
  if (found == message.npos) return 0;
  std::int64_t number = 0;
  const std::string_view digits = message.substr(found + words.size());
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

[[noreturn]] void fail(const TokenizerOptions& options, std::string_view message) {
  if (const auto largest = number_after(message, "Please set it to a value <= "); largest > 0) {
    throw Error(
        fmt::format("the text is too small for a vocabulary of {}; the largest possible one has {} "
                    "tokens.",
                    grouped(options.vocabulary), grouped(largest)));
  }
  if (message.find("smaller than required_chars") != message.npos) {
    const auto smallest = number_after(message, " vs ");
    throw Error(
        fmt::format("a vocabulary of {} is too small for the text's characters, which need at "
                    "least {}; ask for a larger one or for a lower character coverage.",
                    grouped(options.vocabulary), grouped(smallest)));
  }
  throw Error(fmt::format("the tokenizer could not be learned: {}", printable(message)));
}

std::string train(const TokenizerOptions& options, const std::vector<std::string>& symbols,
                  Sample& sample, bool with_log) {
  SampleIterator lines(sample, with_log);
  std::string bytes;
  const auto status =
      sentencepiece::SentencePieceTrainer::Train(settings_of(options, symbols), &lines, &bytes);
  if (!status.ok()) fail(options, status.message());
  return bytes;
}

// The progress of the trainer, taken from its log. The unigram trainer starts with many pieces and
// removes a quarter of them at a time ("EM sub_iter=1 size=33715 …"); the BPE trainer adds pieces
// one by one ("Added: freq=12 size=420 …"). Between counting and these, the unigram trainer sorts
// all substrings, of which it reports nothing but the start.
class TrainerLog {
 public:
  TrainerLog(std::int64_t pieces, std::int64_t lines) : pieces_(pieces) {
    progress_ = {.stage = LearnProgress::Stage::counting, .lines = lines};
  }

  const LearnProgress& progress() const { return progress_; }

  void add(std::string_view message) {
    using Stage = LearnProgress::Stage;
    if (message.starts_with(kCountedLines))
      progress_.counted = number_after(message, kCountedLines);
    if (message.find("Normalizing sentences") != message.npos) progress_.counted = progress_.lines;
    if (message.find("Making suffix array") != message.npos) progress_.stage = Stage::sorting;
    const bool removes = message.find("EM sub_iter=") != message.npos;
    if (!removes && message.find("Added: ") == message.npos) return;
    const auto size = static_cast<double>(number_after(message, " size="));
    if (size < 1) return;
    progress_.stage = Stage::learning;
    const auto last = static_cast<double>(pieces_);
    double fraction = size / last;
    if (removes) {
      first_ = std::max(first_, size);
      fraction = first_ > last ? std::log(first_ / size) / std::log(first_ / last) : 1;
    }
    progress_.fraction = std::clamp(fraction, progress_.fraction, 1.0);
  }

 private:
  std::int64_t pieces_;  // that it must choose
  double first_ = 0;     // the pieces that the unigram trainer started with
  LearnProgress progress_;
};

// `next_line` with calls of the hooks.
NextLine hooked(const NextLine& next_line, const LearnHooks& hooks) {
  return [&, lines = std::int64_t{0}](std::string& line) mutable {
    constexpr std::int64_t kLinesPerReport = 1024;
    check_stop(hooks.stop);
    if (!next_line(line)) return false;
    if (++lines % kLinesPerReport == 0 && hooks.progress) hooks.progress({.lines = lines});
    return true;
  };
}

}  // namespace

LearnedTokenizer learn_tokenizer(const TokenizerOptions& options, const NextLine& any_next_line,
                                 const LearnHooks& hooks) {
  check_options(options);
  const NextLine next_line = hooked(any_next_line, hooks);
  if (options.kind == TokenizerKind::characters || options.kind == TokenizerKind::bytes) {
    return learn_plain_tokenizer(options, next_line);
  }
  const std::vector<std::string> symbols = checked_symbols(options);
  const std::int64_t reserved = check_special(options) + static_cast<std::int64_t>(symbols.size()) +
                                (options.byte_fallback ? 256 : 0);
  if (options.vocabulary <= reserved) {
    throw UsageError(
        fmt::format("a vocabulary of {} has no space for characters: special tokens, symbols and "
                    "bytes take {}.",
                    grouped(options.vocabulary), grouped(reserved)));
  }

  LearnedTokenizer learned;
  Sample sample(options.max_lines);
  for (std::string line; next_line(line);) {
    sample.add(learned.lines, clean_line(line));
    ++learned.lines;
  }
  learned.lines_used = sample.line_count();
  if (learned.lines_used == 0) throw Error("there is no text to learn a tokenizer from.");

  if (hooks.progress || hooks.stop != nullptr) {
    TrainerLog log(options.vocabulary - reserved, learned.lines);
    const auto work = [&] {
      sentencepiece::logging::SetMinLogLevel(0);  // in the child only
      return train(options, symbols, sample, true);
    };
    const auto tick = [&] {
      if (hooks.progress) hooks.progress(log.progress());
    };
    learned.bytes = run_in_child(
        work, {.stop = hooks.stop, .log = [&](auto line) { log.add(line); }, .tick = tick});
  } else {
    silence_sentencepiece();
    learned.bytes = train(options, symbols, sample, false);
  }
  check_sentencepiece(learned.bytes, "the tokenizer just learned");
  return learned;
}

}  // namespace nunchi
