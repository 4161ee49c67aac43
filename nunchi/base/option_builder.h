// What the parsers of options share: the limits of a text, and a tree made from a parser's events.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "nunchi/base/option_tree.h"

namespace nunchi::option_text {

inline constexpr std::size_t kDeepest = 16;
inline constexpr std::size_t kLongestKey = 100;
inline constexpr std::string_view kTooLong = "a key is longer than 100 bytes.";
inline constexpr std::string_view kTooDeep = "this is nested too deeply; 16 levels are allowed.";

// Throws an error about a line of the text, counted from 1; 0: the line is unknown.
using Fail = std::function<void(int line, const std::string& what)>;

// The line of the byte at `offset`.
int line_at(std::string_view text, std::size_t offset);

// Calls `fail` for a text that is too large, has a zero byte or is not valid UTF-8.
void check_text(std::string_view text, const Fail& fail);

// Where a parsed tree belongs.
struct Origin {
  std::size_t source = 0;  // see OptionValue::source
  std::size_t depth = 0;   // of its root in the tree that it is put into
};

class TreeBuilder {
 public:
  using Kind = OptionValue::Kind;

  TreeBuilder(Fail fail, const Origin& origin) : fail_(std::move(fail)), origin_(origin) {}

  bool wants_key() const;
  void key(std::string text, int line);
  void scalar(Kind kind, std::string text, int line);
  void open(Kind kind, int line);
  void close();

  OptionValue take() && { return std::move(root_); }

 private:
  struct Level {
    OptionValue value;
    std::set<std::string> keys;
    std::string key;  // of the next value
    int key_line = 0;
    bool has_key = false;
  };

  void check_escapes(const std::string& text, int line) const;
  OptionValue value_of(Kind kind, int line) const;
  void add(OptionValue value);

  Fail fail_;
  Origin origin_;
  std::vector<Level> open_;
  OptionValue root_;
};

}  // namespace nunchi::option_text
