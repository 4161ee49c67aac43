// The help of every command: its contents, its width and its examples.
#include <algorithm>

#include "nunchi/text/unicode.h"
#include "tests/cli/help_text.h"
#include "tests/errors.h"
#include "tests/support.h"

namespace nunchi::testing {
namespace {

// The arguments of nunchi in each example, without pipes and redirections.
std::vector<std::string> examples_in(const std::string& help) {
  std::vector<std::string> examples;
  for (const std::string& line : section(help, "Examples")) {
    const bool continues = line.starts_with("    ");
    if (continues) {
      examples.back().pop_back();  // the backslash
      examples.back() += line;
      continue;
    }
    examples.push_back(line.substr(line.find("nunchi ")));
  }
  for (std::string& example : examples) {
    example = example.substr(std::string("nunchi ").size());
    example = example.substr(0, example.find_first_of("<>|"));
  }
  return examples;
}

TEST(Help, NamesAllCommands) {
  const std::vector<std::string>& commands = all_commands();
  for (const std::string name : {"demo",
                                 "lab",
                                 "tokenizer train",
                                 "tokenizer encode",
                                 "tokenizer decode",
                                 "train",
                                 "average",
                                 "translate",
                                 "generate",
                                 "fill",
                                 "embed",
                                 "classify",
                                 "score",
                                 "info",
                                 "evaluate",
                                 "bench gemm",
                                 "bench attention",
                                 "bench train",
                                 "bench translate",
                                 "completion"}) {
    EXPECT_NE(std::ranges::find(commands, name), commands.end()) << name;
  }
}

TEST(Help, TheHelpCommandAndTheOptionPrintTheSame) {
  for (const std::string& command : all_commands()) {
    const ProgramResult option = run(command + " --help"), word = run("help " + command);
    EXPECT_EQ(option.code, 0) << command;
    EXPECT_TRUE(option.error.empty()) << option.error;
    EXPECT_EQ(word.code, 0) << command;
    EXPECT_EQ(word.out, option.out);
    EXPECT_EQ(run(command + " -h").out, option.out);
  }
  EXPECT_EQ(run("help").out, help_of(""));
  EXPECT_EQ(run("help trane").code, 2);
}

TEST(Help, FitsEightyColumns) {
  std::vector<std::string> commands = all_commands();
  commands.insert(commands.end(), {"", "bench", "tokenizer"});
  for (const std::string& command : commands) {
    for (const std::string& line : lines_of(help_of(command))) {
      EXPECT_LE(display_width(line), 80) << command << ": " << line;
      EXPECT_FALSE(line.ends_with(' ')) << command << ": " << line;
    }
  }
}

TEST(Help, DescribesTheValuesOfEveryOption) {
  int with_value = 0;
  for (const std::string& command : all_commands()) {
    const std::vector<ShownOption> options = options_in(help_of(command));
    EXPECT_FALSE(options.empty()) << command;
    for (const ShownOption& option : options) {
      EXPECT_FALSE(option.text.empty()) << command << ": " << option.name;
      const std::size_t dashes = option.name.find("--");
      const bool takes_value =
          dashes == option.name.npos || option.name.find(' ', dashes) != option.name.npos;
      if (!takes_value) continue;
      ++with_value;
      EXPECT_TRUE(option.text.ends_with(']')) << command << ": " << option.name;
      EXPECT_EQ(option.text.find("[;"), option.text.npos) << command << ": " << option.name;
    }
  }
  EXPECT_GT(with_value, 100);
}

TEST(Help, ShowsTypesAndDefaults) {
  const std::vector<ShownOption> options = options_in(help_of("translate"));
  const auto text_of = [&](const std::string& name) {
    for (const ShownOption& option : options) {
      if (option.name.ends_with(name)) return option.text;
    }
    return "no option " + name;
  };
  EXPECT_TRUE(says(text_of("-i, --input FILE"), "or - for standard input; default: -]"));
  EXPECT_TRUE(
      says(text_of("--beam-size N"), "[a whole number from 1 to 4096; default: the model's]"))
      << text_of("--beam-size N");
  EXPECT_TRUE(says(text_of("--top-p X"), "[a number above 0 and up to 1; default: 1]"));
  EXPECT_TRUE(says(text_of("--precision TYPE"),
                   "[f32, bf16 or int8; default: f32 on the CPU, bf16 on a GPU]"));
  EXPECT_TRUE(says(text_of("--alignment [KIND]"), "[hard or soft; without KIND: hard]"));
  EXPECT_TRUE(says(text_of("--n-best N"), "[a whole number from 1 to 4096]"));
}

TEST(Help, DeviceOptionsAreDescribedTheSameEverywhere) {
  const std::vector<std::string> device = section(help_of("translate"), "Device");
  ASSERT_GE(device.size(), 4u);
  int commands = 0;
  for (const std::string& command : all_commands()) {
    const std::vector<std::string> other = section(help_of(command), "Device");
    if (other.empty()) continue;
    ++commands;
    EXPECT_EQ(other, device) << command;
  }
  EXPECT_GE(commands, 12);
}

TEST(Help, ExamplesAreValidCalls) {
  for (const std::string& command : all_commands()) {
    const std::vector<std::string> examples = examples_in(help_of(command));
    EXPECT_FALSE(examples.empty()) << command;
    for (const std::string& example : examples) {
      EXPECT_TRUE(example.starts_with(command)) << example;
      const ProgramResult result = run("--parse-only " + example);
      EXPECT_EQ(result.code, 0) << example << ": " << result.error;
    }
  }
}

TEST(Help, ParseOnlyFindsWrongCallsAndRunsNothing) {
  for (const char* call : {"translate", "translate no-such-model --nonsense",
                           "translate no-such-model --beam-size 0", "bench train --set a=b"}) {
    EXPECT_EQ(run(std::string("--parse-only ") + call).code, 2) << call;
  }
  EXPECT_EQ(run("--parse-only translate no-such-model").code, 0);
  EXPECT_EQ(run("translate no-such-model").code, 1);
}

TEST(Help, ShortOptionsEqualLongOptions) {
  EXPECT_EQ(run("-V").out, run("--version").out);
  EXPECT_EQ(run("--parse-only translate m -i in.txt -o out.txt").code, 0);
  EXPECT_EQ(run("--parse-only tokenizer train -i a b -o c.spm --vocab 9").code, 0);
}

TEST(WrongValue, IsReportedWithTheAllowedValues) {
  EXPECT_EQ(run("translate m --beam-size 0").error,
            "nunchi: --beam-size must be a whole number from 1 to 4096, not '0'; see 'nunchi "
            "translate --help'.\n");
  EXPECT_EQ(run("evaluate a --reference b --tokenize ja").error,
            "nunchi: --tokenize must be 13a, intl, zh, ja-mecab, ko-mecab, char or none, not 'ja'; "
            "see 'nunchi evaluate --help'.\n");
  for (const char* value : {"nan", "inf", "-1", "1.5", "1e999", "x", "''"}) {
    EXPECT_EQ(run(std::string("translate m --sample --top-p ") + value).code, 2) << value;
  }
}

}  // namespace
}  // namespace nunchi::testing
