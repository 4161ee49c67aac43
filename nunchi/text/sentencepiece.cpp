#include "nunchi/text/sentencepiece.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/text/fnv1a.h"
#include "nunchi/text/sentencepiece_check.h"
#include "nunchi/text/sentencepiece_library.h"
#include "nunchi/text/unicode.h"

namespace nunchi {
namespace {

// Longer texts are passed to the library in parts, where that does not change the result: it needs
// some hundred bytes of memory for each byte of text.
constexpr std::size_t kLongText = 64 << 10;  // bytes
// The library counts bytes in an int, after replacing one byte by up to three.
constexpr std::size_t kMaxPartBytes = std::size_t{256} << 20;
constexpr std::string_view kSpaceMark = "\u2581";

// The number of bytes to encode in one call: the whole text or, if it is long, up to a space.
std::size_t first_part_bytes(std::string_view text) {
  std::size_t space = kLongText;
  while (space < text.size()) {
    space = text.find(' ', space);
    if (space == text.npos) break;
    // After a ▁ in the text, the space would be the last character of the part and be dropped.
    if (!text.substr(0, space).ends_with(kSpaceMark)) return space;
    ++space;
  }
  return text.size();
}

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string bytes, const std::string& name)
      : facts_(check_sentencepiece(bytes, name)),
        fingerprint_(fnv1a(bytes)),
        serialized_(std::move(bytes)) {
    silence_sentencepiece();
    const auto status = processor_.LoadFromSerializedProto(serialized_);
    if (!status.ok()) {
      throw Error(fmt::format("{} is not a usable tokenizer: SentencePiece reports '{}'.", name,
                              status.message()));
    }
    if (!facts_.byte_fallback && !facts_.rewrites) find_known_characters();
  }

  std::int64_t vocabulary() const override { return facts_.vocabulary; }

  Tokens encode(std::string_view text) const override {
    const std::string composed = without_unknown_runs(nfc(repaired_utf8(text)));
    Tokens tokens;
    for (std::string_view rest = composed; !rest.empty();) {
      const bool can_split = facts_.spaces_begin_pieces && !facts_.rewrites;
      const std::string_view part =
          rest.substr(0, can_split ? first_part_bytes(rest) : rest.size());
      append_encoded(tokens, part);
      rest.remove_prefix(part.size());
    }
    return tokens;
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    for (const std::int32_t id : ids) check_id(id);
    std::string text;
    const auto status = processor_.Decode(std::vector<int>(ids.begin(), ids.end()), &text);
    if (!status.ok())
      throw Error(fmt::format("the tokens cannot be decoded: {}", status.message()));
    return text;
  }

  std::string piece(std::int32_t id) const override {
    check_id(id);
    return processor_.IdToPiece(id);
  }

  SpecialTokens special() const override { return facts_.special; }
  bool is_fallback(std::int32_t id) const override {
    return processor_.IsUnknown(id) || processor_.IsByte(id);
  }
  std::uint64_t fingerprint() const override { return fingerprint_; }
  const std::string& serialized() const override { return serialized_; }

 private:
  void check_id(std::int32_t id) const {
    if (id < 0 || id >= facts_.vocabulary) {
      throw Error(fmt::format("token {} is not in the vocabulary, which has {} tokens.", id,
                              facts_.vocabulary));
    }
  }

  void append_encoded(Tokens& tokens, std::string_view part) const {
    if (part.size() > kMaxPartBytes) {
      throw Error("a text of more than 256 MiB cannot be encoded in one piece.");
    }
    std::vector<int> ids;
    const auto status = processor_.Encode({part.data(), part.size()}, &ids);
    if (!status.ok()) throw Error(fmt::format("a text cannot be encoded: {}", status.message()));
    tokens.insert(tokens.end(), ids.begin(), ids.end());
  }

  void find_known_characters() {
    known_characters_.resize(0x110000, false);
    for (int id = 0; id < facts_.vocabulary; ++id) {
      if (processor_.IsControl(id) || processor_.IsUnknown(id)) continue;
      for (std::string_view rest = processor_.IdToPiece(id); !rest.empty();) {
        known_characters_[take_character(rest)] = true;
      }
    }
    known_characters_[U' '] = true;
  }

  // A run of unknown characters becomes one <unk>, whatever its length. The library copies the
  // whole run for each of its characters, so only the first one is passed on.
  std::string without_unknown_runs(std::string text) const {
    if (known_characters_.empty()) return text;
    std::string shorter;
    bool after_unknown = false;
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view before = rest;
      const bool unknown = !known_characters_[take_character(rest)];
      if (!(unknown && after_unknown)) shorter += before.substr(0, before.size() - rest.size());
      after_unknown = unknown;
    }
    return shorter;
  }

  SentencePieceFacts facts_;
  std::uint64_t fingerprint_;
  std::string serialized_;
  sentencepiece::SentencePieceProcessor processor_;
  std::vector<bool> known_characters_;  // indexed by code point; empty: do not shorten unknown runs
};

}  // namespace

std::unique_ptr<Tokenizer> make_sentencepiece(std::string bytes, const std::string& name) {
  return std::make_unique<SentencePieceTokenizer>(std::move(bytes), name);
}

}  // namespace nunchi
