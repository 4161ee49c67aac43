#include "nunchi/text/sentencepiece_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "nunchi/base/error.h"
#include "nunchi/base/wire_format.h"
#include "nunchi/text/charsmap_check.h"
#include "nunchi/text/sentencepiece.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/paths.h"
#include "tests/text/small_spm.h"

namespace nunchi {
namespace {

using namespace testing;

std::string refusal_of(const std::string& file) {
  // A copy without spare capacity, so that sanitizers detect reads past the end.
  const std::vector<char> exact(file.begin(), file.end());
  return error_of([&] { check_sentencepiece({exact.data(), exact.size()}, "m.spm"); });
}

::testing::AssertionResult is_refused(const std::string& file, const std::string& why) {
  const std::string message = refusal_of(file);
  if (message == "m.spm is not a usable tokenizer: " + why + ".") {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << message;
}

::testing::AssertionResult change_is_refused(const std::function<void(SmallSpm&)>& change,
                                             const std::string& why) {
  SmallSpm model;
  change(model);
  return is_refused(model.bytes(), why);
}

TEST(WireFormat, ReadsEveryTypeInOrder) {
  const std::string message =
      wire_number(1, 300) + wire_bytes(2, "two") + wire_float(3, 1.5f) + "\x21" + "12345678";
  WireReader reader(message);
  EXPECT_EQ(reader.next()->value, 300u);
  EXPECT_EQ(reader.next()->bytes, "two");
  const auto third = reader.next();
  EXPECT_EQ(third->number, 3u);
  EXPECT_EQ(std::bit_cast<float>(static_cast<std::uint32_t>(third->value)), 1.5f);
  EXPECT_EQ(reader.next()->value, 0x3837363534333231u);
  EXPECT_FALSE(reader.next().has_value());
}

TEST(WireFormat, RefusesInvalidFields) {
  const auto reads = [](std::string_view message) {
    for (WireReader reader(message); reader.next();) {
    }
  };
  EXPECT_NO_THROW(reads(wire_number(1, std::numeric_limits<std::uint64_t>::max())));
  for (const std::string& message :
       {std::string("\x0A\x05"
                    "four"),                           // five bytes announced, four present
        std::string("\x08"), std::string("\x08\x80"),  // no value, an incomplete value
        std::string("\x08") + std::string(9, '\xFF') + "\x02",  // 65 bits
        std::string("\x0A") + std::string(9, '\xFF') + "\x01",  // 2^64-1 bytes
        std::string("\x0D\x01\x02\x03"),
        std::string("\x09"
                    "1234567"),
        std::string("\x0B\x0C"),     // a group
        std::string("\x02\x00", 2),  // field 0
        std::string("\x0E"), std::string("\x0F")}) {
    EXPECT_THROW(reads(message), Error) << ::testing::PrintToString(message);
  }
}

TEST(SentencePieceCheck, AcceptsValidModels) {
  SmallSpm model;
  const SentencePieceFacts facts = check_sentencepiece(model.bytes(), "m.spm");
  EXPECT_EQ(facts.vocabulary, 8);
  EXPECT_FALSE(facts.byte_fallback);
  EXPECT_FALSE(facts.rewrites);
  EXPECT_TRUE(facts.spaces_begin_pieces);
  model.add_bytes();
  for (const int kind : {1, 2, 4}) {
    model.kind = kind;
    EXPECT_TRUE(check_sentencepiece(model.bytes(), "m.spm").byte_fallback);
  }
  model.more_trainer = wire_bytes(999, "of a later version") + wire_number(4, 3);
  EXPECT_NO_THROW(check_sentencepiece(model.bytes(), "m.spm"));
  model.pieces[3].text = "a\u2581";
  EXPECT_FALSE(check_sentencepiece(model.bytes(), "m.spm").spaces_begin_pieces);
}

TEST(SentencePieceCheck, RefusesBrokenFiles) {
  EXPECT_TRUE(is_refused("", "it is empty"));
  EXPECT_TRUE(is_refused("\x0A\x20", "a field reaches past the end"));
  EXPECT_NE(refusal_of("Hello, I am a text file.\n"), "no error");
  const std::string file = SmallSpm().bytes();
  // A few truncated files are accepted: the cut is between two fields, and the missing fields have
  // defaults.
  int accepted = 0;
  for (std::size_t size = 0; size < file.size(); ++size) {
    accepted += refusal_of(file.substr(0, size)) == "no error" ? 1 : 0;
  }
  EXPECT_LE(accepted, 8);
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::string noise(random() % 200, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    EXPECT_NE(refusal_of(noise), "no error");
  }
}

TEST(SentencePieceCheck, RefusesUnknownRepeatedAndMistypedFields) {
  const auto why = [](const std::function<void(SmallSpm&)>& change) {
    SmallSpm model;
    change(model);
    const std::string message = refusal_of(model.bytes());
    return message.substr(message.find(": ") + 2);
  };
  EXPECT_EQ(why([](auto& m) { m.more = wire_number(6, 1); }), "field 6 is unknown.");
  EXPECT_EQ(why([](auto& m) { m.more = wire_number(4, 1); }), "field 4 has the wrong type.");
  EXPECT_EQ(why([](auto& m) { m.more = wire_bytes(2, ""); }), "field 2 occurs twice.");
  EXPECT_EQ(why([](auto& m) { m.more_trainer = wire_number(35, 1); }), "field 35 occurs twice.");
  EXPECT_EQ(why([](auto& m) { m.more_trainer = wire_bytes(24, "x"); }),
            "field 24 has the wrong type.");
  EXPECT_EQ(why([](auto& m) { m.more_normalizer = wire_number(7, 1); }), "field 7 is unknown.");
  EXPECT_EQ(why([](auto& m) { m.more_normalizer = wire_number(5, 0); }),
            "it does not write spaces as ▁.");
  EXPECT_EQ(why([](auto& m) { m.more = wire_bytes(1, wire_bytes(9, "x")); }),
            "piece 8 is broken: field 9 is unknown.");
  EXPECT_EQ(why([](auto& m) { m.more = wire_bytes(4, std::string(1 << 17, 'x')); }),
            "its samples for the self-test are too long.");
  EXPECT_EQ(why([](auto& m) { m.more_trainer = wire_bytes(44, "\xFF"); }),
            "the text for <unk> is too long or not UTF-8.");
}

TEST(SentencePieceCheck, RefusesBrokenPieces) {
  const auto add = [](SpmPiece piece) { return [=](SmallSpm& m) { m.pieces.push_back(piece); }; };
  EXPECT_TRUE(change_is_refused(add({""}), "piece 8 is broken: it is empty"));
  EXPECT_TRUE(
      change_is_refused(add({std::string(3000, 'x')}), "piece 8 is broken: it is too long"));
  EXPECT_TRUE(change_is_refused(add({"\xED\xA0\x80"}), "piece 8 is broken: it is not UTF-8"));
  EXPECT_TRUE(
      change_is_refused(add({std::string("a\0b", 3)}), "piece 8 is broken: it has a zero byte"));
  EXPECT_TRUE(change_is_refused(add({"x", 7}), "piece 8 is broken: its type is unknown"));
  for (const float score : {NAN, INFINITY, -INFINITY}) {
    EXPECT_TRUE(
        change_is_refused(add({"x", 1, score}), "piece 8 is broken: its score is not finite"));
  }
  EXPECT_TRUE(change_is_refused(add({"ab"}), "piece 8 ('ab') occurs twice"));
  EXPECT_TRUE(change_is_refused(add({"<s>"}), "piece 8 ('<s>') occurs twice"));
  EXPECT_TRUE(
      change_is_refused(add({"x", kSpmUnknown}), "piece 8 ('x') is a second unknown piece"));
  EXPECT_TRUE(change_is_refused(add({"눈", kSpmControl}), "piece 8 ('눈') is a control character"));
  EXPECT_TRUE(change_is_refused(add({"<0x41>", kSpmByte}),
                                "piece 8 ('<0x41>') is for a byte, but there is no byte fallback"));
}

TEST(SentencePieceCheck, FindsSpecialTokensAtAnyId) {
  EXPECT_EQ(check_sentencepiece(SmallSpm().bytes(), "m.spm").special, kUsualSpecialTokens);
  SmallSpm odd;
  std::swap(odd.pieces[0], odd.pieces[6]);
  std::swap(odd.pieces[1], odd.pieces[7]);
  odd.pieces.push_back({"<pad>", kSpmControl});
  EXPECT_EQ(check_sentencepiece(odd.bytes(), "m.spm").special,
            (SpecialTokens{.unknown = 6, .begin = 7, .end = 2, .pad = 8}));
  // Like T5's tokenizer: no piece begins a sentence.
  SmallSpm t5;
  t5.pieces[0] = {"<pad>", kSpmControl};
  t5.pieces[1] = {"</s>", kSpmControl};
  t5.pieces[2] = {"<unk>", kSpmUnknown};
  EXPECT_EQ(check_sentencepiece(t5.bytes(), "m.spm").special,
            (SpecialTokens{.unknown = 2, .end = 1, .pad = 0}));
  // The file may give them other names.
  SmallSpm named;
  named.pieces[1].text = "<start>";
  named.pieces[2].text = "<stop>";
  named.more_trainer = wire_bytes(46, "<start>") + wire_bytes(47, "<stop>");
  EXPECT_EQ(check_sentencepiece(named.bytes(), "m.spm").special, kUsualSpecialTokens);
  // A user-defined symbol is text, even if it looks like a special token.
  SmallSpm symbol;
  symbol.pieces.push_back({"<pad>", kSpmSymbol});
  EXPECT_EQ(check_sentencepiece(symbol.bytes(), "m.spm").special.pad, kNoToken);
}

TEST(SentencePieceCheck, RefusesMissingSpecialTokensAndUnsupportedModelTypes) {
  const std::string no_end =
      "it has no control piece '</s>' that ends a sentence. Train it with an eos_id of 0 or more, "
      "or with 'nunchi tokenizer train'";
  EXPECT_TRUE(change_is_refused([](auto& m) { m.pieces[2].type = kSpmSymbol; }, no_end));
  EXPECT_TRUE(change_is_refused([](auto& m) { m.pieces.resize(2); }, no_end));
  EXPECT_TRUE(change_is_refused([](auto& m) { m.pieces[0].type = kSpmNormal; },
                                "it has no piece for unknown text (<unk>)"));
  EXPECT_TRUE(
      change_is_refused([](auto& m) { m.kind = 3; }, "models of whole words are not supported"));
  EXPECT_TRUE(change_is_refused([](auto& m) { m.kind = 5; }, "its model type is unknown"));
}

TEST(SentencePieceCheck, RefusesAnIncompleteSetOfBytePieces) {
  EXPECT_TRUE(change_is_refused([](auto& m) { m.byte_fallback = true; },
                                "the pieces for the 256 bytes are not complete"));
  EXPECT_TRUE(change_is_refused(
      [](auto& m) {
        m.add_bytes();
        m.pieces.pop_back();
      },
      "the pieces for the 256 bytes are not complete"));
  EXPECT_TRUE(change_is_refused(
      [](auto& m) {
        m.add_bytes();
        m.pieces.back().text = "<0xff>";
      },
      "piece 263 ('<0xff>') does not name a byte"));
}

TEST(SentencePieceCheck, RefusesLongChainsOfSymbolsThatArePrefixes) {
  EXPECT_EQ(max_nesting({}), 0u);
  EXPECT_EQ(max_nesting({"b", "abc", "a", "ab", "ac"}), 3u);
  SmallSpm model;
  for (std::size_t length = 3; length < 67; ++length) {
    model.pieces.push_back({std::string(length, 'a'), kSpmSymbol});
  }
  EXPECT_EQ(refusal_of(model.bytes()), "no error");
  model.pieces.push_back({std::string(70, 'a'), kSpmSymbol});
  EXPECT_TRUE(is_refused(model.bytes(), "more than 64 of its symbols are prefixes of one another"));
}

TEST(CharsmapCheck, AcceptsValidRules) {
  EXPECT_NO_THROW(check_charsmap(SmallCharsmap().bytes()));
  SmallSpm model;
  model.more_normalizer = wire_bytes(2, SmallCharsmap().bytes());
  EXPECT_TRUE(check_sentencepiece(model.bytes(), "m.spm").rewrites);
  const auto tokenizer = make_tokenizer(model.bytes(), "m.spm");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("aab")), "bbb")
      << "the library reads the rules too";
}

TEST(CharsmapCheck, RefusesOffsetsOutsideOfTheMap) {
  const auto why = [](const std::function<void(SmallCharsmap&)>& change) -> std::string {
    SmallCharsmap rules;
    change(rules);
    const std::string blob = rules.bytes();
    const std::vector<char> exact(blob.begin(), blob.end());
    try {
      check_charsmap({exact.data(), exact.size()});
    } catch (const Error& error) {
      const std::string message = error.what();
      return message.substr(message.find(": ") + 2);
    }
    return "no error";
  };
  constexpr auto kA = SmallCharsmap::kA, kLeaf = SmallCharsmap::kLeaf;
  EXPECT_EQ(why([](auto& r) { r.units[0] = 5000u << 10; }), "the trie points outside of itself");
  EXPECT_EQ(why([](auto& r) { r.units[kA] = 0x1FFFFFu << 10 | 1u << 9 | 'a'; }),
            "the trie points outside of itself");
  EXPECT_EQ(why([](auto& r) { r.units.resize(600); }), "the trie points outside of itself");
  EXPECT_EQ(why([](auto& r) { r.units.resize(100); }), "the trie points outside of itself");
  EXPECT_EQ(why([](auto& r) { r.units[kLeaf] = 1u << 31 | 2; }),
            "a rule's output lies outside of the file");
  EXPECT_EQ(why([](auto& r) { r.outputs = "b"; }), "the last output is not terminated");
  EXPECT_EQ(why([](auto& r) { r.outputs = ""; }), "the trie reaches past the end");
  EXPECT_EQ(why([](auto& r) { r.units.clear(); }), "the trie is not made of whole units");
  EXPECT_EQ(why([](auto& r) { r.outputs.assign(65, 'x').push_back('\0'); }),
            "a rule's output is too long");
  EXPECT_EQ(why([](auto& r) { r.outputs = std::string("\xED\0", 2); }),
            "a rule's output is not UTF-8");
  // 'a' leads back to itself: a long text would overflow the library's array of matches.
  EXPECT_EQ(
      why([](auto& r) { r.units[kA] = (kA ^ SmallCharsmap::kChildren) << 10 | 1u << 8 | 'a'; }),
      "the trie has a cycle");
  EXPECT_THROW(check_charsmap("abc"), Error);
}

TEST(CharsmapCheck, RefusesLongChainsOfRulesThatArePrefixes) {
  for (const std::uint32_t rules : {32u, 33u}) {
    SmallCharsmap map;
    map.units.assign(256 * (rules + 2), SmallCharsmap::kEmpty);
    std::uint32_t children = 256;
    map.units[0] = children << 10;
    for (std::uint32_t rule = 0; rule < rules; ++rule) {
      const std::uint32_t index = children ^ 'a', next = children + 256;
      map.units[index] = (index ^ next) << 10 | 1u << 8 | 'a';
      map.units[next] = 1u << 31;
      children = next;
    }
    if (rules == 32) {
      EXPECT_NO_THROW(check_charsmap(map.bytes()));
    } else {
      EXPECT_THROW(check_charsmap(map.bytes()), Error);
    }
  }
}

// The library must survive every file that passes the check.
TEST(SentencePieceCheck, MutatedModelsAreRefusedOrWork) {
  SmallSpm model;
  model.pieces.push_back({"<x>", kSpmSymbol});
  model.pieces.push_back({"<y>", kSpmUnused});
  model.more_normalizer = wire_bytes(2, SmallCharsmap().bytes());
  std::mt19937 random(7);
  for (const int kind : {1, 2}) {
    model.kind = kind;
    const std::string valid = model.bytes();
    for (int round = 0; round < 1500; ++round) {
      std::string file = valid;
      for (int change = 0; change < 1 + round % 3; ++change) {
        // Every second round mutates only the first 200 bytes: most of the file is an almost empty
        // trie.
        const std::size_t position = random() % (round % 2 == 0 ? file.size() : 200);
        file[position] = static_cast<char>(random());
      }
      try {
        const auto tokenizer = make_tokenizer(file, "m.spm");
        const Tokens tokens = tokenizer->encode("ab a  <x>b\u2581 <y> <s> abba 눈치");
        for (const std::int32_t id : tokens) EXPECT_TRUE(id == 0 || id > 2);
        tokenizer->decode(tokens);
      } catch (const Error&) {
      }
    }
  }
}

TEST(SentencePieceCheck, FuzzSeedsAreAcceptedOrRefusedAsNamed) {
  namespace fs = std::filesystem;
  const fs::path corpus = fs::path(NUNCHI_SOURCE_DIR) / "tests/fuzz/corpus/sentencepiece";
  int seeds = 0;
  for (const fs::directory_entry& seed : fs::directory_iterator(corpus)) {
    const bool valid = seed.path().filename().string().starts_with("valid-");
    const std::string message = refusal_of(content(seed.path()));
    EXPECT_EQ(message == "no error", valid) << seed.path() << ": " << message;
    if (valid) {
      EXPECT_NO_THROW(make_tokenizer(content(seed.path()), "seed")) << seed.path();
    }
    ++seeds;
  }
  EXPECT_GE(seeds, 30);
}

}  // namespace
}  // namespace nunchi
