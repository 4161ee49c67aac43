#include "nunchi/text/learn_tokenizer.h"

#include <fmt/format.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"
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
constexpr std::size_t kMostBytes = std::size_t{120} << 20;
// The BPE trainer aborts the process at a word of 65,536 characters.
constexpr std::size_t kLongestLine = 4096;
constexpr std::size_t kLongestSymbol = 256;
// The trainer's sums are split by threads, so the number of threads changes bits: it is fixed.
constexpr const char* kTrainerThreads = "8";

constexpr char32_t kSpaceMark = U'\u2581';    // a space inside pieces
constexpr char32_t kUnknownMark = U'\u2585';  // the trainer drops lines that have it

[[noreturn]] void refuse_symbol(const std::string& symbol, const char* why) {
  throw UsageError(fmt::format("the symbol '{}' {}.", printable(symbol), why));
}

bool separates(char32_t character) {
  return character <= U' ' || character == 0x7F || character == kSpaceMark ||
         character == kUnknownMark;
}

void check_symbol(const std::string& symbol) {
  if (symbol.empty()) throw UsageError("a symbol is empty.");
  if (symbol.size() > kLongestSymbol) refuse_symbol(symbol, "is longer than 256 bytes");
  if (!is_valid_utf8(symbol)) refuse_symbol(symbol, "is not UTF-8");
  if (symbol == "<s>" || symbol == "</s>" || symbol == "<unk>") {
    refuse_symbol(symbol, "already exists, and text must not be encoded as it");
  }
  if (symbol.size() == 6 && symbol.starts_with("<0x") && symbol.ends_with('>')) {
    refuse_symbol(symbol, "looks like the piece of a byte");
  }
  for (std::string_view rest = symbol; !rest.empty();) {
    if (separates(take_character(rest))) refuse_symbol(symbol, "has a space or control character");
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
  if (most_nested({symbols.begin(), symbols.end()}) > kMostNestedSymbols) {
    throw UsageError("more than 64 symbols are prefixes of one another.");
  }
  return symbols;
}

void check_options(const TokenizerOptions& options) {
  constexpr std::int64_t kMostTokens = 1 << 24;
  if (options.vocabulary < 4 || options.vocabulary > kMostTokens) {
    throw UsageError(fmt::format("a vocabulary has 4 to 16,777,216 tokens, not {}.",
                                 grouped(options.vocabulary)));
  }
  if (!(options.character_coverage >= 0.98 && options.character_coverage <= 1)) {
    throw UsageError(fmt::format("the coverage of characters is from 0.98 to 1, not {}.",
                                 options.character_coverage));
  }
  if (options.max_lines < 1) throw UsageError("at least one line has to be used.");
}

// Throws UsageError unless the special tokens have ids of their own in the vocabulary. Returns how
// many there are.
std::int64_t check_special(const TokenizerOptions& options) {
  const SpecialTokens& special = options.special;
  std::vector<std::int32_t> ids;
  for (const std::int32_t id : {special.unknown, special.begin, special.end, special.pad}) {
    if (id == kNoToken) continue;
    if (id < 0 || id >= options.vocabulary || std::ranges::find(ids, id) != ids.end()) {
      throw UsageError(
          fmt::format("special tokens need different ids below the vocabulary's "
                      "{}; {} is not one.",
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
std::string prepared(std::string_view line) {
  const std::string text = nfc(repaired_utf8(line));
  std::string words;
  words.reserve(text.size());
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view from = rest;
    if (!separates(take_character(rest))) {
      words += from.substr(0, from.size() - rest.size());
    } else if (!words.empty() && words.back() != ' ') {
      words += ' ';
    }
  }
  if (words.ends_with(' ')) words.pop_back();
  return words;
}

// Where to cut a long line: before a space or, without one, between two characters.
std::size_t cut_of(std::string_view line) {
  if (line.size() <= kLongestLine) return line.size();
  const std::size_t space = line.rfind(' ', kLongestLine);
  if (space != line.npos && space > 0) return space;
  std::size_t at = kLongestLine;
  while ((static_cast<unsigned char>(line[at]) & 0xC0) == 0x80) --at;
  return at;
}

// Holds parts of lines up to a limit. Each has a random number that depends on its position alone.
// When there are too many parts, those with a number in the upper half of the allowed range are
// dropped, and the range is halved.
class Sample {
 public:
  explicit Sample(std::int64_t max_lines) : max_lines_(static_cast<std::size_t>(max_lines)) {}

  void add(std::int64_t line, std::string_view words) {
    for (std::uint32_t part = 0; !words.empty(); ++part) {
      const std::size_t length = cut_of(words);
      add_part(line, part, words.substr(0, length));
      words.remove_prefix(length);
    }
  }

  std::size_t size() const { return parts_.size(); }
  std::string take(std::size_t index) { return std::move(parts_[index].text); }

  // Lines of which at least one part is kept.
  std::int64_t lines() const {
    std::int64_t count = 0, last = -1;
    for (const Part& part : parts_) {
      if (part.line != last) ++count;
      last = part.line;
    }
    return count;
  }

 private:
  struct Part {
    std::int64_t line;
    std::uint32_t number;
    std::string text;
  };

  void add_part(std::int64_t line, std::uint32_t part, std::string_view text) {
    constexpr philox::Key kKey = philox::key_of({.seed = 0x746F6B656E});
    const auto low = static_cast<std::uint32_t>(line),
               high = static_cast<std::uint32_t>(line >> 32);
    const std::uint32_t number = philox::bits({low, high, part, 0}, kKey)[0];
    if (number > largest_) return;
    parts_.push_back({line, number, std::string(text)});
    bytes_ += text.size();
    while (parts_.size() > max_lines_ || bytes_ > kMostBytes) shrink();
  }

  void shrink() {
    largest_ /= 2;
    std::erase_if(parts_, [&](const Part& part) { return part.number > largest_; });
    bytes_ = 0;
    for (const Part& part : parts_) bytes_ += part.text.size();
  }

  std::size_t max_lines_;
  std::size_t bytes_ = 0;
  std::uint32_t largest_ = std::numeric_limits<std::uint32_t>::max();
  std::vector<Part> parts_;
};

// Passes the sample to the trainer and frees each part once it is read.
class SampleIterator final : public sentencepiece::SentenceIterator {
 public:
  explicit SampleIterator(Sample& sample) : sample_(sample) { Next(); }

  bool done() const override { return done_; }
  const std::string& value() const override { return text_; }
  sentencepiece::util::Status status() const override { return {}; }

  void Next() override {
    done_ = next_ == sample_.size();
    if (!done_) text_ = sample_.take(next_++);
  }

 private:
  Sample& sample_;
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
      {"max_sentence_length", std::to_string(kLongestLine)},
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
  const std::size_t at = message.find(words);
  if (at == message.npos) return 0;
  std::int64_t number = 0;
  const std::string_view digits = message.substr(at + words.size());
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

[[noreturn]] void fail(const TokenizerOptions& options, std::string_view message) {
  if (const auto most = number_after(message, "Please set it to a value <= "); most > 0) {
    throw Error(
        fmt::format("the text is too small for a vocabulary of {}; {} is the most that it "
                    "holds.",
                    grouped(options.vocabulary), grouped(most)));
  }
  if (message.find("smaller than required_chars") != message.npos) {
    const auto least = number_after(message, " vs ");
    throw Error(
        fmt::format("a vocabulary of {} has no room for the text's characters, which need "
                    "at least {}; ask for more, or for a lower coverage of characters.",
                    grouped(options.vocabulary), grouped(least)));
  }
  throw Error(fmt::format("the tokenizer could not be learned: {}", printable(message)));
}

}  // namespace

LearnedTokenizer learn_tokenizer(const TokenizerOptions& options, const NextLine& next_line) {
  check_options(options);
  if (options.kind == TokenizerKind::characters || options.kind == TokenizerKind::bytes) {
    return learn_plain_tokenizer(options, next_line);
  }
  const std::vector<std::string> symbols = checked_symbols(options);
  const std::int64_t reserved = check_special(options) + static_cast<std::int64_t>(symbols.size()) +
                                (options.byte_fallback ? 256 : 0);
  if (options.vocabulary <= reserved) {
    throw UsageError(
        fmt::format("a vocabulary of {} is full before the first character: special "
                    "tokens, symbols and bytes are {}.",
                    grouped(options.vocabulary), grouped(reserved)));
  }

  LearnedTokenizer learned;
  Sample sample(options.max_lines);
  for (std::string line; next_line(line);) {
    sample.add(learned.lines, prepared(line));
    ++learned.lines;
  }
  learned.lines_used = sample.lines();
  if (learned.lines_used == 0) throw Error("there is no text to learn a tokenizer from.");

  silence_sentencepiece();
  SampleIterator lines(sample);
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings_of(options, symbols),
                                                                 &lines, &learned.bytes);
  if (!status.ok()) fail(options, status.message());
  check_sentencepiece(learned.bytes, "the tokenizer just learned");
  return learned;
}

}  // namespace nunchi
