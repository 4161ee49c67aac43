// The words of a generated language and their ids, after those of the usual special tokens.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/text/tokens.h"

namespace nunchi::lab {

class Vocabulary {
 public:
  void add(const auto& words) {
    for (const auto& word : words) add_word(std::string(word));
  }
  // Adds the words of a text, separated by spaces.
  void add_text(const std::string& text) {
    std::istringstream stream(text);
    for (std::string word; stream >> word;) add_word(word);
  }

  std::int64_t size() const { return std::ssize(words_); }
  // Throws Error for an unknown word.
  std::int32_t id(const std::string& word) const {
    const auto found = std::ranges::find(words_, word);
    if (found == words_.end()) throw Error("the generated language has no word '" + word + "'.");
    return kFirst + static_cast<std::int32_t>(found - words_.begin());
  }
  Tokens encode(const std::string& text) const {
    Tokens tokens;
    std::istringstream stream(text);
    for (std::string word; stream >> word;) tokens.push_back(id(word));
    return tokens;
  }
  const std::string& word(std::int32_t id) const {
    static const std::string special = "<>";
    return id < kFirst ? special : words_.at(static_cast<std::size_t>(id - kFirst));
  }
  std::string decode(const Tokens& tokens) const {
    std::string text;
    for (const std::int32_t token : tokens) text += (text.empty() ? "" : " ") + word(token);
    return text;
  }

 private:
  static constexpr std::int32_t kFirst = 3;
  void add_word(const std::string& word) {
    if (std::ranges::find(words_, word) == words_.end()) words_.push_back(word);
  }
  std::vector<std::string> words_;
};

}  // namespace nunchi::lab
