// Small .spm files, valid and invalid, built field by field.
#pragma once

#include <bit>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace nunchi::testing {

inline std::string wire_varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

inline std::string wire_number(int field, std::uint64_t value) {
  return wire_varint(static_cast<std::uint64_t>(field) << 3) + wire_varint(value);
}

inline std::string wire_bytes(int field, std::string_view value) {
  return wire_varint(static_cast<std::uint64_t>(field) << 3 | 2) + wire_varint(value.size()) +
         std::string(value);
}

inline std::string little_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(value >> shift));
  return bytes;
}

inline std::string wire_float(int field, float value) {
  return wire_varint(static_cast<std::uint64_t>(field) << 3 | 5) +
         little_endian(std::bit_cast<std::uint32_t>(value));
}

enum SpmType { kSpmNormal = 1, kSpmUnknown, kSpmControl, kSpmSymbol, kSpmUnused, kSpmByte };

struct SpmPiece {
  std::string text;
  int type = kSpmNormal;
  float score = -1;
};

// A model of a few pieces, which tests modify.
struct SmallSpm {
  std::vector<SpmPiece> pieces{{"<unk>", kSpmUnknown}, {"<s>", kSpmControl},  {"</s>", kSpmControl},
                               {"\u2581", 1, -3},      {"a", 1, -2},          {"b", 1, -2},
                               {"ab", 1, -1},          {"\u2581ab", 1, -0.5f}};
  int kind = 2;  // 1 unigram, 2 BPE, 3 words, 4 characters
  bool byte_fallback = false;
  // Fields to append to the trainer settings, to the normalizer and to the model.
  std::string more_trainer, more_normalizer, more;

  void add_bytes() {
    byte_fallback = true;
    for (int byte = 0; byte < 256; ++byte) {
      char name[8];
      std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
      pieces.push_back({name, kSpmByte, 0});
    }
  }

  std::string bytes() const {
    std::string file;
    for (const SpmPiece& piece : pieces) {
      file += wire_bytes(1, wire_bytes(1, piece.text) + wire_float(2, piece.score) +
                                wire_number(3, static_cast<std::uint64_t>(piece.type)));
    }
    file += wire_bytes(2, wire_number(3, static_cast<std::uint64_t>(kind)) +
                              wire_number(35, byte_fallback ? 1 : 0) + more_trainer);
    return file + wire_bytes(3, wire_bytes(1, "identity") + more_normalizer) + more;
  }
};

// A rewriting rule: "a" becomes `output`. The units are in the layout of darts-clone.
struct SmallCharsmap {
  static constexpr std::uint32_t kEmpty = 1u << 31;  // matches no byte
  std::vector<std::uint32_t> units = std::vector<std::uint32_t>(768, kEmpty);
  std::string outputs;
  static constexpr std::uint32_t kChildren = 256, kLeaf = 512, kEndsRule = 1u << 8,
                                 kIsValue = 1u << 31;
  static constexpr std::uint32_t kA = kChildren ^ 'a';

  explicit SmallCharsmap(std::string_view output = "b") : outputs(std::string(output) + '\0') {
    units[0] = kChildren << 10;
    units[kA] = (kA ^ kLeaf) << 10 | kEndsRule | 'a';
    units[kLeaf] = kIsValue | 0;
  }

  std::string bytes() const {
    std::string blob = little_endian(static_cast<std::uint32_t>(units.size() * 4));
    for (const std::uint32_t unit : units) blob += little_endian(unit);
    return blob + outputs;
  }
};

}  // namespace nunchi::testing
