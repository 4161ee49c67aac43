// A small model and what the tests of `nunchi translate` and `nunchi score` share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "nunchi/decoding/generation_config.h"
#include "tests/cli/program.h"
#include "tests/inference/small_translation.h"

namespace nunchi::testing {

inline std::vector<std::string> lines_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

inline std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = line.find(" ||| ", begin);
    fields.push_back(line.substr(begin, end - begin));
    if (end == line.npos) return fields;
    begin = end + 5;
  }
}

// The text with one zero for every whole number and decimal: "-12.3456" becomes "-0.0000".
inline std::string pattern_of(const std::string& text) {
  std::string pattern;
  bool decimals = false;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) decimals = c == '.' && pattern.ends_with('0');
    if (!digit || decimals || !pattern.ends_with('0')) pattern += digit ? '0' : c;
  }
  return pattern;
}

inline void expect_one_sentence(const ProgramResult& result, int code, const std::string& because) {
  EXPECT_EQ(result.code, code) << result.error;
  EXPECT_EQ(result.error.rfind("nunchi: ", 0), 0u) << result.error;
  EXPECT_NE(result.error.find(because), std::string::npos) << result.error;
  EXPECT_EQ(std::ranges::count(result.error, '\n'), 1) << result.error;
  EXPECT_TRUE(result.out.empty()) << result.out;
}

// All tests of this file share a model folder; each test has its own temporary folder.
class TranslateCommand : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    translation_ = new SmallTranslation;
    model_folder_ = new TemporaryFolder;
    translation_->save(model_folder_->path());
    save_generation_config({.max_length = 9}, {}, model_folder_->path());
  }
  static void TearDownTestSuite() {
    delete model_folder_;
    delete translation_;
  }

  static std::string model() { return model_folder_->path().string(); }

  ProgramResult translate(const std::string& options, const std::string& input) {
    write_text(folder_ / "input", input);
    return run("translate " + model() + " --threads 1 " + options, "",
               (folder_ / "input").string());
  }
  // The library's translations of each line.
  static std::vector<Translations> expected(const std::vector<std::string>& texts,
                                            TranslatorOptions options = {}) {
    options.search.max_length = 9;
    return translation_->translator(options).translate(lines_of(texts));
  }

  inline static SmallTranslation* translation_ = nullptr;
  inline static TemporaryFolder* model_folder_ = nullptr;
  TemporaryFolder folder_;
};

}  // namespace nunchi::testing
