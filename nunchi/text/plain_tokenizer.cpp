#include "nunchi/text/plain_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/base/printable.h"
#include "nunchi/text/fnv1a.h"
#include "nunchi/text/unicode.h"

namespace nunchi {
namespace {

constexpr std::string_view kHeader = "nunchi tokenizer 1\n";
constexpr std::string_view kCharacters = "characters\n", kBytes = "bytes\n";
constexpr SpecialTokens kSpecialTokens = kUsualSpecialTokens;
constexpr std::int32_t kUnknown = kSpecialTokens.unknown, kFirstTextToken = 3;
constexpr char32_t kLastCharacter = 0x10FFFF;
constexpr const char* kSpecialPieces[] = {"<unk>", "<s>", "</s>"};
constexpr std::string_view kReplacement = "\uFFFD";

bool is_character(std::uint32_t code) {
  return code <= kLastCharacter && !(code >= 0xD800 && code <= 0xDFFF);
}

std::string utf8(char32_t character) {
  const auto code = static_cast<std::uint32_t>(character);
  const auto byte = [](std::uint32_t value) { return static_cast<char>(value); };
  const auto low = [&](int shift) { return byte(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xC0 | code >> 6), low(0)};
  if (code < 0x10000) return {byte(0xE0 | code >> 12), low(6), low(0)};
  return {byte(0xF0 | code >> 18), low(12), low(6), low(0)};
}

// How a character is displayed in a list of pieces separated by spaces.
std::string display_text(char32_t character) {
  if (character == U' ') return "\u2581";
  if (character == U'\u2581') return "<U+2581>";
  if (character < U' ' || character == 0x7F) {
    return fmt::format("<0x{:02X}>", static_cast<std::uint32_t>(character));
  }
  return utf8(character);
}

class PlainTokenizer : public Tokenizer {
 public:
  explicit PlainTokenizer(std::string bytes)
      : fingerprint_(fnv1a(bytes)), serialized_(std::move(bytes)) {}

  SpecialTokens special() const override { return kSpecialTokens; }
  std::uint64_t fingerprint() const override { return fingerprint_; }
  const std::string& serialized() const override { return serialized_; }
  const char* extension() const override { return "tok"; }

 protected:
  void check_id(std::int32_t id) const {
    if (id < 0 || id >= vocabulary()) {
      throw Error(
          fmt::format("token {} is not in the vocabulary, which has {} tokens.", id, vocabulary()));
    }
  }

 private:
  std::uint64_t fingerprint_;
  std::string serialized_;
};

class CharacterTokenizer final : public PlainTokenizer {
 public:
  CharacterTokenizer(std::string bytes, std::vector<char32_t> characters)
      : PlainTokenizer(std::move(bytes)), characters_(std::move(characters)) {}

  std::int64_t vocabulary() const override {
    return kFirstTextToken + static_cast<std::int64_t>(characters_.size());
  }
  Tokens encode(std::string_view text) const override {
    const std::string composed = nfc(repaired_utf8(text));
    Tokens tokens;
    for (std::string_view rest = composed; !rest.empty();) {
      tokens.push_back(token_of(take_character(rest)));
    }
    return tokens;
  }
  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    for (const std::int32_t id : ids) {
      check_id(id);
      if (id >= kFirstTextToken) text += utf8(character(id));
      if (id == kUnknown) text += kReplacement;
    }
    return text;
  }
  std::string piece(std::int32_t id) const override {
    check_id(id);
    return id < kFirstTextToken ? kSpecialPieces[id] : display_text(character(id));
  }
  std::int32_t line_end() const override {
    const std::int32_t found = token_of(U'\n');
    return found == kUnknown ? special().end : found;
  }

 private:
  char32_t character(std::int32_t id) const {
    return characters_[static_cast<std::size_t>(id - kFirstTextToken)];
  }
  std::int32_t token_of(char32_t character) const {
    const auto found = std::ranges::lower_bound(characters_, character);
    if (found == characters_.end() || *found != character) return kUnknown;
    return kFirstTextToken + static_cast<std::int32_t>(found - characters_.begin());
  }

  std::vector<char32_t> characters_;  // ascending
};

class ByteTokenizer final : public PlainTokenizer {
 public:
  using PlainTokenizer::PlainTokenizer;

  std::int64_t vocabulary() const override { return kFirstTextToken + 256; }
  Tokens encode(std::string_view text) const override {
    Tokens tokens;
    for (const char byte : nfc(repaired_utf8(text))) {
      tokens.push_back(kFirstTextToken + static_cast<unsigned char>(byte));
    }
    return tokens;
  }
  // Invalid UTF-8, which any sequence of bytes may contain, is replaced by U+FFFD.
  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    for (const std::int32_t id : ids) {
      check_id(id);
      if (id >= kFirstTextToken) text += static_cast<char>(id - kFirstTextToken);
      if (id == kUnknown) text += kReplacement;
    }
    return repaired_utf8(text);
  }
  std::string piece(std::int32_t id) const override {
    check_id(id);
    if (id < kFirstTextToken) return kSpecialPieces[id];
    const auto byte = static_cast<std::uint32_t>(id - kFirstTextToken);
    return byte < 0x80 ? display_text(byte) : fmt::format("<0x{:02X}>", byte);
  }
  std::int32_t line_end() const override { return kFirstTextToken + '\n'; }
};

// Reads the code points in `list`, which is the file from its third line on.
std::vector<char32_t> read_characters(std::string_view list, const std::string& name) {
  std::vector<char32_t> characters;
  std::int64_t line_number = 3;
  for (; !list.empty(); ++line_number) {
    const auto fail = [&](const char* problem) {
      throw Error(fmt::format("{}:{}: {}.", name, line_number, problem));
    };
    const std::size_t end = list.find('\n');
    if (end == list.npos) fail("the file ends in the middle of a line");
    const std::string_view line = list.substr(0, end);
    list.remove_prefix(end + 1);
    std::uint32_t code = 0;
    const auto [parsed_end, error] =
        std::from_chars(line.data(), line.data() + line.size(), code, 16);
    // Only the canonical spelling is accepted, so that a tokenizer has one file.
    const bool is_canonical = error == std::errc() && parsed_end == line.data() + line.size() &&
                              fmt::format("{:04X}", code) == line;
    if (!is_canonical || !is_character(code))
      fail("expected the code point of a character, such as 0041");
    if (!characters.empty() && code <= characters.back())
      fail("the characters are not in ascending order");
    characters.push_back(code);
  }
  if (characters.empty()) throw Error(name + " is a tokenizer without characters.");
  return characters;
}

std::string serialize(const std::vector<char32_t>& characters) {
  std::string bytes(kHeader);
  bytes += kCharacters;
  for (const char32_t character : characters) {
    bytes += fmt::format("{:04X}\n", static_cast<std::uint32_t>(character));
  }
  return bytes;
}

void check_plain_options(const TokenizerOptions& options) {
  if (!options.symbols.empty()) {
    throw UsageError(
        "symbols are only possible with bpe and unigram, not with characters or bytes.");
  }
  if (options.special != kSpecialTokens) {
    throw UsageError("the ids of special tokens can only be chosen for bpe and unigram.");
  }
}

}  // namespace

bool is_plain_tokenizer(std::string_view bytes) { return bytes.starts_with("nunchi tokenizer"); }

std::unique_ptr<Tokenizer> make_plain_tokenizer(std::string bytes, const std::string& name) {
  if (!bytes.starts_with(kHeader)) {
    throw Error(name + ":1: this version of the tokenizer format is not supported.");
  }
  const std::string_view rest = std::string_view(bytes).substr(kHeader.size());
  if (rest == kBytes) return std::make_unique<ByteTokenizer>(std::move(bytes));
  if (!rest.starts_with(kCharacters)) {
    throw Error(name + ":2: expected 'characters' and their list, or 'bytes' and nothing else.");
  }
  std::vector<char32_t> characters = read_characters(rest.substr(kCharacters.size()), name);
  return std::make_unique<CharacterTokenizer>(std::move(bytes), std::move(characters));
}

LearnedTokenizer learn_plain_tokenizer(const TokenizerOptions& options, const NextLine& next_line) {
  check_plain_options(options);
  LearnedTokenizer learned;
  if (options.kind == TokenizerKind::bytes) {
    learned.bytes = std::string(kHeader) + std::string(kBytes);
    return learned;
  }
  std::map<char32_t, std::int64_t> counts;
  std::int64_t total = 0;
  for (std::string line; next_line(line); ++learned.lines) {
    const std::string text = nfc(repaired_utf8(line));
    if (!text.empty()) ++learned.lines_used;
    for (std::string_view rest = text; !rest.empty(); ++total) ++counts[take_character(rest)];
  }
  if (learned.lines_used == 0) throw Error("there is no text to learn a tokenizer from.");
  // Every text has line breaks, so they always get a token.
  counts.erase(U'\n');
  std::vector<std::pair<std::int64_t, char32_t>>
      by_frequency;  // (-count, character), the most frequent first
  by_frequency.reserve(counts.size());
  for (const auto& [character, count] : counts) by_frequency.emplace_back(-count, character);
  std::ranges::sort(by_frequency);
  const auto max_characters = static_cast<std::size_t>(options.vocabulary - kFirstTextToken);
  const double to_cover = options.character_coverage * static_cast<double>(total);
  std::vector<char32_t> characters = {U'\n'};
  double covered = 0;
  for (const auto& [negative_count, character] : by_frequency) {
    if (characters.size() >= max_characters || covered >= to_cover) break;
    characters.push_back(character);
    covered -= static_cast<double>(negative_count);
  }
  std::ranges::sort(characters);
  learned.bytes = serialize(characters);
  return learned;
}

}  // namespace nunchi
