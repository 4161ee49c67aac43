// Written options read back as the same options, and every mistake gets one sentence with its line.
#include "nunchi/base/options.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nunchi/base/error.h"
#include "nunchi/base/json_options.h"
#include "nunchi/base/yaml_options.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/paths.h"

namespace nunchi::testing {
namespace {

enum class Fruit { apple, pear };
constexpr std::array kFruits = {Choice{"apple", Fruit::apple}, Choice{"pear", Fruit::pear}};

struct Part {
  std::string name;
  double weight = 1;
  bool operator==(const Part&) const = default;
};

struct Inner {
  float dropout = 0.1f;
  Fruit fruit = Fruit::apple;
  bool operator==(const Inner&) const = default;
};

struct Config {
  int steps = 7;
  std::uint64_t seed = 1;
  double rate = 0.5;
  double epsilon = 1e-9;
  bool shared = true;
  std::string name = "none";
  std::filesystem::path folder;
  std::vector<std::string> symbols = {"<a>"};
  std::vector<Part> parts;
  Inner model;
  bool operator==(const Config&) const = default;
};

void visit_fields(auto& visitor, auto& config) {
  visitor.integer("steps", config.steps, 1, 1000);
  visitor.integer("seed", config.seed, 0, INT64_MAX);
  visitor.number("rate", config.rate, -1, 2);
  visitor.positive("epsilon", config.epsilon);
  visitor.flag("shared", config.shared);
  visitor.text("name", config.name);
  visitor.path("folder", config.folder);
  visitor.texts("symbols", config.symbols);
  visitor.maps("parts", config.parts, [](auto& visitor, auto& part) {
    visitor.text("name", part.name);
    visitor.number("weight", part.weight, 0, 100);
  });
  visitor.map("model", [&](auto& visitor) {
    visitor.fraction("dropout", config.model.dropout);
    visitor.choice("fruit", config.model.fruit, kFruits);
  });
}

Config config_of(const Options& options) {
  Config config;
  OptionReader in(options);
  visit_fields(in, config);
  in.finish();
  return config;
}

Config from_yaml(std::string_view text, const std::vector<std::string>& assignments = {}) {
  Options options = Options::from_yaml(text, "a.yaml");
  for (const std::string& assignment : assignments) options.set(assignment);
  return config_of(options);
}

Config from_json(std::string_view text) { return config_of(Options::from_json(text, "a.json")); }

std::string yaml_error(std::string_view text, const std::vector<std::string>& assignments = {}) {
  return error_with_kind([&] { from_yaml(text, assignments); });
}
std::string json_error(std::string_view text) {
  return error_with_kind([&] { from_json(text); });
}

TEST(Options, MissingKeysKeepTheirDefaults) {
  for (const char* text : {"", "---\n", "# nothing\n", "{}", "model:\n"}) {
    EXPECT_EQ(from_yaml(text), Config()) << text;
  }
  EXPECT_EQ(from_json("{}"), Config());
}

TEST(Options, EveryTypeIsReadFromBothSyntaxes) {
  Config expected;
  expected.steps = 12;
  expected.seed = INT64_MAX;
  expected.rate = -0.25;
  expected.epsilon = 1e-12;
  expected.shared = false;
  expected.name = "눈치: \"no\"";
  expected.folder = "runs/a b";
  expected.symbols = {"no", "3", "#"};
  expected.parts = {{"one", 0.5}, {"two", 1}};
  expected.model = {.dropout = 0.3f, .fruit = Fruit::pear};
  EXPECT_EQ(from_yaml("steps: 12\n"
                      "seed: 9223372036854775807\n"
                      "rate: -.25\n"
                      "epsilon: 1.0e-12\n"
                      "shared: false\n"
                      "name: '눈치: \"no\"'\n"
                      "folder: runs/a b  # a comment\n"
                      "symbols: [no, 3, '#']\n"
                      "parts:\n"
                      "  - {name: one, weight: 0.5}\n"
                      "  - name: two\n"
                      "model:\n"
                      "  dropout: 0.3\n"
                      "  fruit: pear\n"),
            expected);
  EXPECT_EQ(from_json(R"({"steps": 12, "seed": 9223372036854775807, "rate": -0.25,
                          "epsilon": 1E-12, "shared": false, "name": "눈치: \"no\"",
                          "folder": "runs/a b", "symbols": ["no", "3", "#"],
                          "parts": [{"name": "one", "weight": 0.5}, {"name": "two"}],
                          "model": {"dropout": 0.3, "fruit": "pear"}})"),
            expected);
}

TEST(Options, ASingleMapIsAListOfOne) {
  EXPECT_EQ(from_yaml("parts: {name: one}\n").parts, (std::vector<Part>{{"one", 1}}));
  EXPECT_TRUE(from_yaml("parts: []\n").parts.empty());
}

TEST(Options, WrittenOptionsReadBackAsTheSame) {
  Config config;
  config.rate = 1.0 / 3;
  config.epsilon = 5e-324 * 1e16;
  config.model.dropout = 0.3f;
  config.parts = {{"one", 0.1}, {"", 2}};
  config.folder = "a/b: c";
  for (const char* name : {"",
                           "plain",
                           "null",
                           "~",
                           "true",
                           "12",
                           "- a",
                           "a: b",
                           " a ",
                           "#",
                           "a #b",
                           "\"'",
                           "two\nlines\n",
                           "\ttab",
                           "\x1b[2J",
                           "\x7f",
                           "눈치",
                           "&a",
                           "*a",
                           "!a",
                           "{",
                           "]",
                           "%",
                           "@",
                           "`",
                           ",",
                           "?",
                           "|",
                           ">",
                           "---",
                           "...",
                           "=",
                           "a\\n",
                           "\xC2\x85",
                           "\xE2\x80\xA8",
                           "\xEF\xBB\xBF",
                           "\xF0\x9F\x98\x80"}) {
    config.name = name;
    config.symbols = {name, name};
    OptionWriter out;
    visit_fields(out, config);
    EXPECT_EQ(from_yaml(to_yaml(out.tree())), config) << to_yaml(out.tree());
    EXPECT_EQ(from_json(to_json(out.tree())), config) << to_json(out.tree());
  }
}

TEST(Options, WrittenYamlIsReadable) {
  Config config;
  config.parts = {{"one", 0.5}, {"12", 1}};
  config.symbols.clear();
  config.folder = "runs/눈치";
  OptionWriter out;
  visit_fields(out, config);
  EXPECT_EQ(to_yaml(out.tree()),
            "steps: 7\n"
            "seed: 1\n"
            "rate: 0.5\n"
            "epsilon: 1e-09\n"
            "shared: true\n"
            "name: none\n"
            "folder: \"runs/눈치\"\n"
            "symbols: []\n"
            "parts:\n"
            "  - name: one\n"
            "    weight: 0.5\n"
            "  - name: \"12\"\n"
            "    weight: 1\n"
            "model:\n"
            "  dropout: 0.1\n"
            "  fruit: apple\n");
}

TEST(Options, FuzzSeedsAreAcceptedOrRefusedAsTheirNamesSay) {
  int seeds = 0;
  for (const auto& seed : std::filesystem::directory_iterator(
           std::filesystem::path(NUNCHI_SOURCE_DIR) / "tests/fuzz/corpus/options")) {
    const std::string text = content(seed.path());
    const std::string yaml = error_with_kind([&] { Options::from_yaml(text, "seed"); });
    const std::string json = error_with_kind([&] { Options::from_json(text, "seed"); });
    const bool valid = seed.path().filename().string().starts_with("valid-");
    EXPECT_EQ(yaml == "no error" || json == "no error", valid) << seed.path() << "\n"
                                                               << yaml << "\n"
                                                               << json;
    ++seeds;
  }
  EXPECT_GE(seeds, 20);
}

TEST(Options, AnUnknownKeyIsAnErrorWithItsLineAndTheNearestKey) {
  EXPECT_EQ(yaml_error("steps: 3\nmodel:\n  droput: 0.1\n"),
            "a.yaml:3: unknown key 'model.droput'. Did you mean 'model.dropout'?");
  EXPECT_EQ(yaml_error("modle: {dropout: 0.1}"),
            "a.yaml:1: unknown key 'modle'. Did you mean 'model'?");
  EXPECT_EQ(yaml_error("parts:\n- name: a\n- nam: b\n"),
            "a.yaml:3: unknown key 'parts[1].nam'. Did you mean 'parts[1].name'?");
  EXPECT_EQ(yaml_error("something_else: 1"), "a.yaml:1: unknown key 'something_else'.");
  EXPECT_EQ(json_error("{\n\"steps\": 3,\n\"model\": {\"droput\": 0}}"),
            "a.json:3: unknown key 'model.droput'. Did you mean 'model.dropout'?");
  EXPECT_EQ(yaml_error("\"\\e[2J\": 1"), "a.yaml:1: unknown key '?[2J'.");
}

TEST(Options, JsonErrorsNameTheirLine) {
  EXPECT_EQ(json_error("{\n  \"seed\": 1\n,\n  \"steps\":\n 1001}"),
            "a.json:4: 'steps' must be a whole number from 1 to 1000, not '1001'.");
  EXPECT_EQ(json_error("{\"symbols\": [\"a\",\n\"b\",\n3\n\n]}"),
            "a.json:3: 'symbols' must be a list of texts, not '3'.");
  EXPECT_EQ(json_error("{\"steps\": 1,\n\n ]"), "a.json:3: this is not valid JSON.");
}

TEST(Options, WholeNumbersAreWrittenInDigits) {
  const std::string expected = "a.yaml:1: 'steps' must be a whole number from 1 to 1000, not ";
  for (const char* wrong : {"abc", "1e2", "1.0", "12_000", "0", "1001", "-3", "+3", "0x10", "007",
                            "99999999999999999999", "true", "1 2", ".inf"}) {
    EXPECT_EQ(yaml_error("steps: " + std::string(wrong)), expected + "'" + wrong + "'.");
  }
  EXPECT_EQ(yaml_error("steps: '3'"), expected + "the text '3'.");
  EXPECT_EQ(yaml_error("steps: [3]"), expected + "a list.");
  EXPECT_EQ(yaml_error("steps: {a: 3}"), expected + "a map.");
  EXPECT_EQ(yaml_error("steps:"),
            "a.yaml:1: 'steps' must be a whole number from 1 to 1000, but the value is missing.");
  EXPECT_NE(json_error(R"({"steps": 1e2})").find("not '1e2'"), std::string::npos);
  EXPECT_NE(json_error(R"({"steps": "3"})").find("not the text '3'"), std::string::npos);
  EXPECT_NE(json_error(R"({"steps": null})").find("the value is missing"), std::string::npos);
}

TEST(Options, NumbersMustBeFiniteAndInRange) {
  for (const char* wrong : {"nan", ".nan", "inf", "-inf", ".inf", "1e400", "2.5", "-1.5", "0x1p3",
                            "1,5", "''", "01.5", "1_0"}) {
    EXPECT_NE(
        yaml_error("rate: " + std::string(wrong)).find("'rate' must be a number from -1 to 2"),
        std::string::npos)
        << wrong;
  }
  EXPECT_EQ(yaml_error("epsilon: 0"), "a.yaml:1: 'epsilon' must be a number above 0, not '0'.");
  EXPECT_EQ(yaml_error("model: {dropout: 1}"),
            "a.yaml:1: 'model.dropout' must be at least 0 and below 1, not '1'.");
  // As a float this would be 1.
  EXPECT_NE(yaml_error("model: {dropout: 0.999999999}"), "no error");
  EXPECT_NE(json_error(R"({"rate": 1e999})").find("too large"), std::string::npos);
}

TEST(Options, WrongFlagsChoicesTextsAndMapsAreErrors) {
  for (const char* wrong : {"yes", "on", "True", "1", "'true'"}) {
    EXPECT_NE(
        yaml_error("shared: " + std::string(wrong)).find("'shared' must be true or false, not"),
        std::string::npos)
        << wrong;
  }
  EXPECT_EQ(yaml_error("model: {fruit: plum}"),
            "a.yaml:1: 'model.fruit' must be one of apple | pear, not 'plum'.");
  EXPECT_EQ(yaml_error("name: [a]"), "a.yaml:1: 'name' must be a text, not a list.");
  EXPECT_EQ(json_error(R"({"name": 3})"), "a.json:1: 'name' must be a text, not '3'.");
  EXPECT_EQ(json_error(R"({"name": true})"), "a.json:1: 'name' must be a text, not 'true'.");
  EXPECT_EQ(yaml_error("symbols: a"),
            "a.yaml:1: 'symbols' must be a list of texts, [a, b], not 'a'.");
  EXPECT_EQ(yaml_error("model: big"), "a.yaml:1: 'model' must be a map, not 'big'.");
  EXPECT_EQ(yaml_error("parts: [a]"), "a.yaml:1: 'parts' must be a list of maps, not 'a'.");
}

TEST(Options, MalformedOptionTreesAreRefused) {
  EXPECT_EQ(yaml_error("steps: 1\nseed: 2\nsteps: 3\n"),
            "a.yaml:3: the key 'steps' appears twice.");
  EXPECT_EQ(json_error("{\"model\": {\"a\": 1,\n\"a\": 1}}"),
            "a.json:2: the key 'a' appears twice.");
  EXPECT_EQ(yaml_error("- a\n"), "a.yaml:1: expected lines of 'key: value'.");
  EXPECT_EQ(json_error("[1]"), "a.json:1: expected a JSON object { … }.");
  EXPECT_EQ(yaml_error("steps: 1\n---\nsteps: 2\n"),
            "a.yaml:2: a second YAML document starts here, but only one is read; is the "
            "indentation right?");
  for (const char* text :
       {"name: &a b", "name: *a", "model: &m {}", "<<: *m", "symbols: [&a b, *a]", "&k name: a"}) {
    EXPECT_NE(yaml_error(text).find("a.yaml:1: "), std::string::npos) << text;
  }
  EXPECT_EQ(yaml_error("name: &a b"), "a.yaml:1: anchors (&) and aliases (*) are not supported.");
  EXPECT_EQ(yaml_error("name: !!str 3"), "a.yaml:1: tags (!) are not supported.");
  for (const char* text : {"? [a]\n: b", "{a: 1}: b", "name: [[a", "[a"}) {
    EXPECT_EQ(yaml_error(text),
              "a.yaml:1: a key must be a text; is a bracket or a brace never closed?")
        << text;
  }
  for (const char* text : {": b", "~: b", "?"}) {
    EXPECT_EQ(yaml_error(text), "a.yaml:1: a key is missing.") << text;
  }
  const std::string deep = "name: " + std::string(100000, '[') + std::string(100000, ']');
  EXPECT_EQ(yaml_error(deep), "a.yaml:1: this is nested too deeply; 16 levels are allowed.");
  EXPECT_NE(json_error("{\"name\":" + std::string(100000, '[')).find("nested too deeply"),
            std::string::npos);
  EXPECT_EQ(yaml_error(std::string(101, 'k') + ": 1"), "a.yaml:1: a key is longer than 100 bytes.");
  std::string dashes;
  for (int i = 0; i < 1000; ++i) dashes += "- ";
  EXPECT_NE(yaml_error(dashes).find("nested too deeply"), std::string::npos);
}

TEST(Options, SyntaxErrorsNameTheirLine) {
  for (const char* text :
       {"steps: 1\nname: 'open\n", "steps: 1\nname: [a\n", "steps: 1\nname: b: c", "steps: 1\n}",
        "steps: 1\nname: @a", "steps: 1\n\tname: a", "steps: 1\n...\n%YAML 9"}) {
    const std::string message = yaml_error(text);
    EXPECT_EQ(message.rfind("a.yaml:", 0), 0u) << text << "\n" << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  EXPECT_EQ(yaml_error("steps: 1\nname: b: c"),
            "a.yaml:2: this is not valid YAML (illegal map value).");
  for (const char* end : {"", "\n", "\nseed: 2\n", "\n\n"}) {
    EXPECT_EQ(yaml_error("steps: 1\nname: 'open" + std::string(end)),
              "a.yaml:2: a quote that opens here or below is never closed.");
  }
  EXPECT_EQ(yaml_error("symbols: [a,\n"),
            "a.yaml:1: this is not valid YAML (end of sequence flow not found).");
}

TEST(Options, BytesThatAreNotTextAreRefused) {
  using namespace std::string_literals;
  EXPECT_EQ(yaml_error("steps: 1\nname: a\0b"s),
            "a.yaml:2: there is a zero byte; is this a text file?");
  EXPECT_EQ(json_error("{\"name\": \"\0\"}"s),
            "a.json:1: there is a zero byte; is this a text file?");
  for (const char* bytes : {"\xFF", "\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80"}) {
    EXPECT_EQ(yaml_error("steps: 1\n\nname: '" + std::string(bytes) + "'"),
              "a.yaml:3: this is not valid UTF-8.");
    EXPECT_EQ(json_error("{\n\"name\": \"" + std::string(bytes) + "\"}"),
              "a.json:2: this is not valid UTF-8.");
  }
}

TEST(Options, EscapesMustMakeValidCharacters) {
  EXPECT_EQ(from_yaml("name: \"\\x41\\u00e9\\U0001F600\\n\"").name, "Aé\xF0\x9F\x98\x80\n");
  const std::string expected = "an escape (\\) does not make a valid character.";
  for (const char* text : {R"(name: "\0")", R"(name: "\x00")", R"(name: "\_")", R"("\N": a)"}) {
    EXPECT_EQ(yaml_error(text), "a.yaml:1: " + expected) << text;
  }
  EXPECT_NE(yaml_error(R"(name: "\ud800")"), "no error");
  EXPECT_EQ(json_error(R"({"folder": "a\u0000b"})"), "a.json:1: " + expected);
  EXPECT_NE(json_error(R"({"name": "\ud800"})"), "no error");
}

TEST(Options, AFileMayHaveAByteOrderMarkAndIsAtMostOneMebibyte) {
  const TemporaryFolder folder;
  write_text(folder / "a.yaml", "\xEF\xBB\xBFsteps: 3\r\nname: b\r\n");  // as Windows writes it
  EXPECT_EQ(config_of(Options::read_yaml(folder / "a.yaml")).steps, 3);
  EXPECT_EQ(config_of(Options::read_yaml(folder / "a.yaml")).name, "b");
  write_text(folder / "a.yaml", "#" + std::string(1 << 20, ' '));
  EXPECT_EQ(error_with_kind([&] { Options::read_yaml(folder / "a.yaml"); }),
            (folder / "a.yaml").string() + ": options must not be larger than 1 MiB.");
  EXPECT_NE(error_with_kind([&] { Options::read_yaml(folder / "b.yaml"); }).find("cannot read"),
            std::string::npos);
  EXPECT_NE(error_with_kind([&] { Options::read_yaml(folder.path()); }).find("not a plain file"),
            std::string::npos);
}

TEST(OptionsSet, ReplacesAndAdds) {
  const Config config = from_yaml("steps: 3\nmodel: {dropout: 0.5}\nparts: [{name: a}, {name: b}]",
                                  {"steps=4", "steps=5", "model.fruit=pear", "name=a=b",
                                   "symbols=[x, 'y']", "parts={name: c}", "folder=\"\""});
  EXPECT_EQ(config.steps, 5);
  EXPECT_EQ(config.model, (Inner{.dropout = 0.5f, .fruit = Fruit::pear}));
  EXPECT_EQ(config.name, "a=b");
  EXPECT_EQ(config.symbols, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(config.parts, (std::vector<Part>{{"c", 1}}));
  EXPECT_EQ(from_yaml("", {"model.dropout=0.25"}).model.dropout, 0.25f);
  EXPECT_EQ(from_yaml("model:", {"model.dropout=0.25"}).model.dropout, 0.25f);
}

TEST(OptionsSet, MistakesAreUsageErrorsAndNameTheAssignment) {
  EXPECT_EQ(yaml_error("", {"steps=3", "model.droput=0.1"}),
            "usage: --set model.droput=0.1: unknown key 'model.droput'. "
            "Did you mean 'model.dropout'?");
  EXPECT_EQ(yaml_error("", {"modle.dropout=0.1"}),
            "usage: --set modle.dropout=0.1: unknown key 'modle'. Did you mean 'model'?");
  EXPECT_EQ(yaml_error("steps: 3", {"steps=x"}),
            "usage: --set steps=x: 'steps' must be a whole number from 1 to 1000, not 'x'.");
  EXPECT_EQ(yaml_error("steps: 3", {"steps.more=1"}),
            "usage: --set steps.more=1: 'steps' is not a map; set it as a whole.");
  EXPECT_EQ(yaml_error("parts: []", {"parts.0=1"}),
            "usage: --set parts.0=1: 'parts' is not a map; set it as a whole.");
  EXPECT_EQ(yaml_error("", {"steps"}), "usage: --set steps: expected key=value.");
  for (const char* wrong : {"=1", ".a=1", "a.=1", "a..b=1"}) {
    EXPECT_NE(yaml_error("", {wrong}).find("a key is empty"), std::string::npos) << wrong;
  }
  EXPECT_EQ(yaml_error("", {"symbols=[a"}),
            "usage: --set symbols=[a: a key must be a text; is a bracket or a brace never closed?");
  EXPECT_EQ(yaml_error("", {"name=]"}),
            "usage: --set name=]: this is not valid YAML (illegal flow end).");
  EXPECT_NE(yaml_error("", {"name=\xFF"}).find("not valid UTF-8"), std::string::npos);
  std::string deep = "a";
  for (int i = 0; i < 100; ++i) deep += ".a";
  EXPECT_NE(yaml_error("", {deep + "=1"}).find("nested too deeply"), std::string::npos);
  EXPECT_NE(yaml_error("", {std::string(101, 'k') + "=1"}).find("longer than 100 bytes"),
            std::string::npos);
  EXPECT_NE(yaml_error("", {"a.a.a.a.a.a.a.a=[[[[[[[[[1]]]]]]]]]"}).find("nested too deeply"),
            std::string::npos);
  // An error in the file still names the file.
  EXPECT_EQ(yaml_error("model:\n  fruit: plum", {"model.dropout=0.1"}),
            "a.yaml:2: 'model.fruit' must be one of apple | pear, not 'plum'.");
}

TEST(OptionReader, FailNamesTheLineOfTheKeyOrOfItsParent) {
  const Options options = Options::from_yaml("model:\n  size: 3\n", "a.yaml");
  OptionReader in(options);
  EXPECT_EQ(error_with_kind([&] { in.fail("model.size", "is odd"); }),
            "a.yaml:2: 'model.size' is odd.");
  EXPECT_EQ(error_with_kind([&] { in.fail("model.heads", "is missing"); }),
            "a.yaml:1: 'model.heads' is missing.");
  EXPECT_EQ(error_with_kind([&] { in.fail("data.train", "is missing"); }),
            "a.yaml:1: 'data.train' is missing.");
  EXPECT_EQ(error_with_kind([&] { in.refuse("model", "it is given elsewhere."); }),
            "a.yaml:1: 'model' cannot be given here: it is given elsewhere.");
  EXPECT_EQ(error_with_kind([&] { in.refuse("other", "never."); }), "no error");
}

}  // namespace
}  // namespace nunchi::testing
