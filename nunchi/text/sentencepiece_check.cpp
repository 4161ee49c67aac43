#include "nunchi/text/sentencepiece_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <bitset>
#include <cmath>
#include <optional>
#include <unordered_set>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/base/printable.h"
#include "nunchi/base/wire_format.h"
#include "nunchi/text/charsmap_check.h"
#include "nunchi/text/unicode.h"

namespace nunchi {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxPieces = std::size_t{1} << 24;
// The library splits an unused piece recursively, in the worst case byte by byte.
constexpr std::size_t kMaxPieceBytes = 2048;
// The library encodes the samples when it loads a model; the limit keeps that fast.
constexpr std::size_t kMaxSampleBytes = 64 << 10;
constexpr std::size_t kMaxUnknownSurfaceBytes = 256;
constexpr std::string_view kSpaceMark = "\u2581";

enum PieceType {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};
enum ModelType { kUnigram = 1, kBpe = 2, kWord = 3, kCharacter = 4 };

// Reads the fields of one message. A singular field must not occur twice: two parsers could
// choose different occurrences.
class Fields {
 public:
  explicit Fields(std::string_view message) : reader_(message) {}

  bool next() {
    field_ = reader_.next();
    return field_.has_value();
  }
  std::uint32_t number() const { return field_->number; }

  std::string_view bytes() { return once(WireType::bytes).bytes; }
  std::string_view repeated_bytes() const { return typed(WireType::bytes).bytes; }
  std::uint64_t varint() { return once(WireType::varint).value; }
  bool flag() { return varint() != 0; }
  float real() {
    return std::bit_cast<float>(static_cast<std::uint32_t>(once(WireType::fixed32).value));
  }
  [[noreturn]] void refuse_unknown() const {
    throw Error(fmt::format("field {} is unknown", number()));
  }

 private:
  const WireField& typed(WireType type) const {
    if (field_->type != type) throw Error(fmt::format("field {} has the wrong type", number()));
    return *field_;
  }
  const WireField& once(WireType type) {
    if (seen_[number()]) throw Error(fmt::format("field {} occurs twice", number()));
    seen_[number()] = true;
    return typed(type);
  }

  WireReader reader_;
  std::optional<WireField> field_;
  std::bitset<64> seen_;  // only known fields are read, and their numbers are small
};

struct Piece {
  std::string_view text;
  std::uint64_t type = kNormal;
};

struct TrainerSettings {
  std::uint64_t model_type = kUnigram;
  bool byte_fallback = false;
  bool space_is_suffix = false;
  // The texts of the pieces that begin, end and pad a sentence.
  std::string_view begin = "<s>", end = "</s>", pad = "<pad>";
};

struct NormalizerSettings {
  bool rewrites = false;
  bool adds_prefix = true;
  bool removes_extra_spaces = true;
};

Piece read_piece(std::string_view message) {
  Piece piece;
  for (Fields fields(message); fields.next();) {
    switch (fields.number()) {
      case 1:
        piece.text = fields.bytes();
        break;
      case 2:
        if (!std::isfinite(fields.real())) throw Error("its score is not finite");
        break;
      case 3:
        piece.type = fields.varint();
        break;
      default:
        fields.refuse_unknown();
    }
  }
  if (piece.text.empty()) throw Error("it is empty");
  if (piece.text.size() > kMaxPieceBytes) throw Error("it is too long");
  if (!is_valid_utf8(piece.text)) throw Error("it is not UTF-8");
  if (piece.text.find('\0') != piece.text.npos) throw Error("it has a zero byte");
  if (piece.type < kNormal || piece.type > kByte) throw Error("its type is unknown");
  return piece;
}

TrainerSettings read_trainer(std::string_view message) {
  TrainerSettings settings;
  for (Fields fields(message); fields.next();) {
    switch (fields.number()) {
      case 3:
        settings.model_type = fields.varint();
        break;
      case 24:
        settings.space_is_suffix = fields.flag();
        break;
      case 35:
        settings.byte_fallback = fields.flag();
        break;
      case 44: {  // the text that <unk> is decoded to
        const std::string_view surface = fields.bytes();
        if (surface.size() > kMaxUnknownSurfaceBytes || !is_valid_utf8(surface)) {
          throw Error("the text for <unk> is too long or not UTF-8");
        }
        break;
      }
      case 46:
        settings.begin = fields.bytes();
        break;
      case 47:
        settings.end = fields.bytes();
        break;
      case 48:
        settings.pad = fields.bytes();
        break;
      default:
        break;  // training settings, which do not affect encoding; newer versions have more
    }
  }
  return settings;
}

NormalizerSettings read_normalizer(std::string_view message) {
  NormalizerSettings settings;
  for (Fields fields(message); fields.next();) {
    switch (fields.number()) {
      case 1:  // its name
      case 6:  // the file its rules came from
        fields.bytes();
        break;
      case 2: {
        const std::string_view charsmap = fields.bytes();
        settings.rewrites = !charsmap.empty();
        if (settings.rewrites) check_charsmap(charsmap);
        break;
      }
      case 3:
        settings.adds_prefix = fields.flag();
        break;
      case 4:
        settings.removes_extra_spaces = fields.flag();
        break;
      case 5:
        fields.flag();
        break;
      default:
        fields.refuse_unknown();
    }
  }
  return settings;
}

// Encoding needs spaces escaped as ▁. (A denormalizer works on plain text and does not escape.)
void check_spaces_are_escaped(std::string_view normalizer) {
  for (Fields fields(normalizer); fields.next();) {
    if (fields.number() == 5 && !fields.flag()) throw Error("it does not write spaces as ▁");
  }
}

std::string describe(std::size_t id, const Piece& piece) {
  return fmt::format("piece {} ('{}')", id, printable(piece.text));
}

// The first piece for which `matches` holds.
template <class Matches>
std::int32_t find_piece(const std::vector<Piece>& pieces, const Matches& matches) {
  const auto found = std::ranges::find_if(pieces, matches);
  return found == pieces.end() ? kNoToken : static_cast<std::int32_t>(found - pieces.begin());
}

SpecialTokens find_special(const std::vector<Piece>& pieces, const TrainerSettings& trainer) {
  const auto control = [&](std::string_view text) {
    return find_piece(
        pieces, [&](const Piece& piece) { return piece.type == kControl && piece.text == text; });
  };
  const SpecialTokens special{
      .unknown = find_piece(pieces, [](const Piece& piece) { return piece.type == kUnknown; }),
      .begin = control(trainer.begin),
      .end = control(trainer.end),
      .pad = control(trainer.pad)};
  if (special.unknown == kNoToken) throw Error("it has no piece for unknown text (<unk>)");
  if (special.end == kNoToken) {
    throw Error(
        fmt::format("it has no control piece '{}' that ends a sentence. Train it with an "
                    "eos_id of 0 or more, or with 'nunchi tokenizer train'",
                    printable(trainer.end)));
  }
  return special;
}

bool is_one_character(std::string_view text) {
  take_character(text);
  return text.empty();
}

bool is_byte_piece(std::string_view text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  return text.size() == 6 && text.starts_with("<0x") && is_digit(text[3]) && is_digit(text[4]) &&
         text[5] == '>';
}

void check_types(const std::vector<Piece>& pieces, std::size_t unknown, bool byte_fallback) {
  std::size_t bytes = 0;
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    const Piece& piece = pieces[id];
    const auto refuse = [&](const char* why) { throw Error(describe(id, piece) + ' ' + why); };
    if (piece.type == kUnknown && id != unknown) refuse("is a second unknown piece");
    // BPE looks up a single character among all pieces, so text could become a control token.
    if (piece.type == kControl && is_one_character(piece.text)) refuse("is a control character");
    if (piece.type != kByte) continue;
    if (!byte_fallback) refuse("is for a byte, but there is no byte fallback");
    if (!is_byte_piece(piece.text)) refuse("does not name a byte");
    ++bytes;
  }
  // No two pieces have the same text, so 256 of them are complete.
  if (byte_fallback && bytes != 256) throw Error("the pieces for the 256 bytes are not complete");
}

void check_unique(const std::vector<Piece>& pieces) {
  std::unordered_set<std::string_view> seen;
  seen.reserve(pieces.size());
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    if (!seen.insert(pieces[id].text).second) {
      throw Error(describe(id, pieces[id]) + " occurs twice");
    }
  }
}

void check_samples(std::string_view message) {
  if (message.size() > kMaxSampleBytes) throw Error("its samples for the self-test are too long");
  for (Fields fields(message); fields.next();) {
    if (fields.number() == 1) fields.repeated_bytes();
  }
}

bool spaces_only_begin_pieces(const std::vector<Piece>& pieces) {
  return std::ranges::all_of(pieces, [](const Piece& piece) {
    return piece.text.find(kSpaceMark, 1) == piece.text.npos &&
           piece.text.find(' ') == piece.text.npos;
  });
}

SentencePieceFacts check(std::string_view file) {
  if (file.empty()) throw Error("it is empty");
  if (file.size() > kMaxFileBytes) throw Error("it has more than 256 MiB");
  std::vector<Piece> pieces;
  TrainerSettings trainer;
  NormalizerSettings normalizer;
  for (Fields fields(file); fields.next();) {
    switch (fields.number()) {
      case 1:
        if (pieces.size() == kMaxPieces) throw Error("it has more than 16,777,216 pieces");
        try {
          pieces.push_back(read_piece(fields.repeated_bytes()));
        } catch (const Error& error) {
          throw Error(fmt::format("piece {} is broken: {}", pieces.size(), error.what()));
        }
        break;
      case 2:
        trainer = read_trainer(fields.bytes());
        break;
      case 3: {
        const std::string_view message = fields.bytes();
        normalizer = read_normalizer(message);
        check_spaces_are_escaped(message);
        break;
      }
      case 4:
        check_samples(fields.bytes());
        break;
      case 5:
        read_normalizer(fields.bytes());
        break;
      default:
        fields.refuse_unknown();
    }
  }
  if (trainer.model_type == kWord) throw Error("models of whole words are not supported");
  if (trainer.model_type != kUnigram && trainer.model_type != kBpe &&
      trainer.model_type != kCharacter) {
    throw Error("its model type is unknown");
  }
  const SpecialTokens special = find_special(pieces, trainer);
  check_types(pieces, static_cast<std::size_t>(special.unknown), trainer.byte_fallback);
  check_unique(pieces);
  std::vector<std::string_view> symbols;
  for (const Piece& piece : pieces) {
    if (piece.type == kUserDefined) symbols.push_back(piece.text);
  }
  if (max_nesting(std::move(symbols)) > kMaxNestedSymbols) {
    throw Error("more than 64 of its symbols are prefixes of one another");
  }
  return {.vocabulary = static_cast<std::int64_t>(pieces.size()),
          .special = special,
          .byte_fallback = trainer.byte_fallback,
          .rewrites = normalizer.rewrites,
          .spaces_begin_pieces = spaces_only_begin_pieces(pieces) && !trainer.space_is_suffix &&
                                 normalizer.adds_prefix && normalizer.removes_extra_spaces};
}

}  // namespace

std::size_t max_nesting(std::vector<std::string_view> symbols) {
  std::ranges::sort(symbols);
  std::vector<std::string_view> prefixes;  // symbols that start the current one, shortest first
  std::size_t longest_chain = 0;
  for (const std::string_view symbol : symbols) {
    while (!prefixes.empty() && !symbol.starts_with(prefixes.back())) prefixes.pop_back();
    prefixes.push_back(symbol);
    longest_chain = std::max(longest_chain, prefixes.size());
  }
  return longest_chain;
}

SentencePieceFacts check_sentencepiece(std::string_view bytes, const std::string& name) {
  try {
    return check(bytes);
  } catch (const Error& error) {
    throw Error(name + " is not a usable tokenizer: " + error.what() + ".");
  }
}

}  // namespace nunchi
