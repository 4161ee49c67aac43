// A small text to learn tokenizers from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nunchi/text/learn_tokenizer.h"

namespace nunchi::testing {

// Sentences of made-up words in two scripts and a few real words.
inline const std::vector<std::string>& small_corpus() {
  static const std::vector<std::string> lines = [] {
    const std::vector<std::string> parts{"고", "양", "이", "나", "무", "하",  "늘",
                                         "바", "다", "눈", "ca", "do", "tre", "sky",
                                         "ä",  "ße", "na", "ï",  "lo", "ve"};
    std::uint32_t state = 1;
    const auto draw = [&](std::uint32_t below) {
      state = state * 1664525u + 1013904223u;
      return (state >> 8) % below;
    };
    std::vector<std::string> words{"고양이", "cat", "dog", "sleeps", "12.5", "(was)", "it?"};
    for (int word = 0; word < 150; ++word) {
      const std::uint32_t script = 10 * draw(2);
      std::string text;
      for (std::uint32_t i = 0; i < 2 + draw(3); ++i) text += parts[script + draw(10)];
      words.push_back(text);
    }
    std::vector<std::string> sentences;
    for (int line = 0; line < 400; ++line) {
      std::string text = words[draw(7)];
      for (int word = 0; word < 5; ++word) text += " " + words[draw(157)];
      sentences.push_back(text + (line % 2 == 0 ? "." : "!"));
    }
    return sentences;
  }();
  return lines;
}

inline NextLine reader_of(const std::vector<std::string>& lines) {
  return [&lines, next = std::size_t{0}](std::string& line) mutable {
    if (next == lines.size()) return false;
    line = lines[next++];
    return true;
  };
}

inline LearnedTokenizer learn(const TokenizerOptions& options,
                              const std::vector<std::string>& lines = small_corpus()) {
  return learn_tokenizer(options, reader_of(lines));
}

}  // namespace nunchi::testing
