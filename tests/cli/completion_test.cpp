// Shell completion and the manual page, which are made from the descriptions that the help shows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/cli/help_text.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace nunchi::testing {
namespace {

// "-i" and "--input" of "  -i, --input FILE"; nothing for an argument.
std::vector<std::string> names_in(const ShownOption& option) {
  std::vector<std::string> names;
  std::istringstream words(option.name);
  for (std::string word; words >> word;) {
    if (!word.starts_with('-')) continue;
    if (word.ends_with(',')) word.pop_back();
    names.push_back(word);
  }
  return names;
}

bool has_tool(const std::string& name) {
  return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
}

std::string output_of(const std::string& command) {
  const TemporaryFolder folder;
  const std::string file = (folder / "output").string();
  EXPECT_EQ(std::system(("(" + command + ") >" + file + " 2>&1").c_str()), 0) << command;
  return content(file);
}

// What bash offers for the last word of a call.
std::vector<std::string> offered_by_bash(const std::vector<std::string>& words) {
  const TemporaryFolder folder;
  std::string quoted;
  for (const std::string& word : words) quoted += " '" + word + "'";
  write_text(folder / "ask.sh", run("completion bash").out +
                                    "compopt() { :; }\nCOMP_WORDS=(nunchi" + quoted +
                                    ")\nCOMP_CWORD=" + std::to_string(words.size()) +
                                    "\n_nunchi\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
  return lines_of(output_of("cd " + folder.path().string() +
                            " && mkdir -p runs && touch notes.txt" + " && bash ask.sh"));
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

std::vector<std::string> split(const std::string& command) {
  std::vector<std::string> words;
  std::istringstream stream(command);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

TEST(Completion, BashOffersTheCommands) {
  if (!has_tool("bash")) GTEST_SKIP() << "bash is not installed";
  const std::vector<std::string> first = offered_by_bash({""});
  for (const std::string& command : all_commands()) {
    EXPECT_TRUE(contains(first, split(command).front())) << command;
  }
  EXPECT_TRUE(contains(first, "help"));
  const std::vector<std::string> help_of_command = offered_by_bash({"help", "tr"});
  EXPECT_TRUE(contains(help_of_command, "translate"));
  EXPECT_FALSE(contains(help_of_command, "demo"));
  EXPECT_TRUE(contains(offered_by_bash({"tokenizer", ""}), "encode"));
  EXPECT_FALSE(contains(offered_by_bash({"train", ""}), "encode"));
}

TEST(Completion, BashOffersEveryOptionOfEveryCommand) {
  if (!has_tool("bash")) GTEST_SKIP() << "bash is not installed";
  for (const std::string& command : all_commands()) {
    std::vector<std::string> words = split(command);
    words.emplace_back("-");
    const std::vector<std::string> offered = offered_by_bash(words);
    for (const ShownOption& option : options_in(help_of(command))) {
      for (const std::string& name : names_in(option)) {
        EXPECT_TRUE(contains(offered, name)) << command << " " << name;
      }
    }
  }
}

TEST(Completion, BashOffersValues) {
  if (!has_tool("bash")) GTEST_SKIP() << "bash is not installed";
  using Words = std::vector<std::string>;
  EXPECT_EQ(offered_by_bash({"translate", "runs", "--precision", ""}),
            (Words{"f32", "bf16", "int8"}));
  EXPECT_EQ(offered_by_bash({"translate", "--precision", "=", "b"}), Words{"bf16"});
  EXPECT_EQ(offered_by_bash({"completion", "z"}), Words{"zsh"});
  EXPECT_EQ(offered_by_bash({"translate", "ru"}), Words{"runs"});
  EXPECT_EQ(offered_by_bash({"translate", "no"}), Words{""});  // a model is a folder
  EXPECT_EQ(offered_by_bash({"translate", "runs", "-i", "no"}), Words{"notes.txt"});
}

TEST(Completion, ZshAndFishKnowEveryOption) {
  const std::string zsh = run("completion zsh").out, fish = run("completion fish").out;
  EXPECT_TRUE(zsh.starts_with("#compdef nunchi\n"));
  for (const std::string& command : all_commands()) {
    std::string name = command;
    std::ranges::replace(name, ' ', '_');
    const std::string function = "\n_nunchi_" + name + "() {\n";
    const std::size_t begin = zsh.find(function);
    ASSERT_NE(begin, zsh.npos) << function;
    const std::string body = zsh.substr(begin, zsh.find("\n}\n", begin) - begin);
    const std::string condition = "-n '__nunchi_command_is " + command + "'";
    EXPECT_TRUE(says(fish, condition)) << command;
    for (const ShownOption& option : options_in(help_of(command))) {
      for (const std::string& word : names_in(option)) {
        EXPECT_TRUE(says(body, word + "[")) << command << " " << word;
        if (!word.starts_with("--")) continue;
        const bool known = std::ranges::any_of(lines_of(fish), [&](const std::string& line) {
          return says(line, condition) && says(line, " -l " + word.substr(2) + " ");
        });
        EXPECT_TRUE(known) << command << " " << word;
      }
    }
  }
}

TEST(Completion, TheScriptsAreValid) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const std::string script = run("completion " + shell).out;
    EXPECT_FALSE(script.empty());
    if (!has_tool(shell)) continue;
    const TemporaryFolder folder;
    write_text(folder / "script", script);
    EXPECT_EQ(output_of(shell + " -n " + (folder / "script").string()), "") << shell;
  }
}

TEST(Completion, AnUnknownShellIsRefused) {
  const ProgramResult result = run("completion tcsh");
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(says(result.error, "SHELL must be bash, zsh or fish, not 'tcsh'")) << result.error;
  EXPECT_EQ(run("completion").code, 2);
}

TEST(ManPage, DescribesEveryCommandAndOption) {
  const ProgramResult result = run("help --man");
  EXPECT_EQ(result.code, 0);
  EXPECT_TRUE(result.out.starts_with(".TH NUNCHI 1 "));
  for (const std::string& command : all_commands()) {
    const std::string heading = ".SS \"nunchi " + command + "\"\n";
    const std::size_t begin = result.out.find(heading);
    ASSERT_NE(begin, result.out.npos) << command;
    const std::string section =
        result.out.substr(begin, result.out.find("\n.S", begin + 1) - begin);
    for (const ShownOption& option : options_in(help_of(command))) {
      for (const std::string& name : names_in(option)) {
        std::string written;
        for (const char c : name) written += c == '-' ? "\\-" : std::string(1, c);
        EXPECT_TRUE(says(section, "\\fB" + written + "\\fR")) << command << " " << name;
      }
    }
  }
}

TEST(ManPage, TroffReadsIt) {
  if (!has_tool("groff")) GTEST_SKIP() << "groff is not installed";
  const TemporaryFolder folder;
  write_text(folder / "nunchi.1", run("help --man").out);
  const std::string page = (folder / "nunchi.1").string();
  // Warnings go to standard error; standard output has the page.
  EXPECT_EQ(output_of("groff -man -Kutf8 -Tutf8 -ww -z " + page), "");
  const std::string text = output_of("groff -man -Kutf8 -Tascii -P-cbou " + page);
  EXPECT_TRUE(says(text, "nunchi translate [OPTIONS] MODEL"));
  EXPECT_TRUE(says(text, "'<2de>'"));  // a quote at the start of a line would be a command
}

}  // namespace
}  // namespace nunchi::testing
