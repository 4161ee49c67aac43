// Shared by the parsers of options: the limits of a text, and a builder that makes a tree from a
// parser's events.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "nunchi/base/option_tree.h"

namespace nunchi::option_text {

inline constexpr std::size_t kMaxDepth = 16;
inline constexpr std::size_t kMaxKeyBytes = 100;
inline constexpr std::string_view kTooLong = "a key is longer than 100 bytes.";
inline constexpr std::string_view kTooDeep = "this is nested too deeply; 16 levels are allowed.";

// Throws an error about a line of the text. Lines count from 1; 0: the line is unknown.
using Fail = std::function<void(int line, const std::string& what)>;

// The line of the byte at `offset`.
int line_at(std::string_view text, std::size_t offset);

// Calls `fail` for a text that is too large, has a zero byte or is not valid UTF-8.
void check_text(std::string_view text, const Fail& fail);

// Where a parsed tree comes from and where it will be inserted.
struct Origin {
  std::size_t source = 0;  // see OptionValue::source
  std::size_t depth = 0;   // of its root in the tree it is inserted into
};

// Makes a tree from events in the order of the text: open() and close() for a map or a list, key()
// before each value of a map, scalar() for the other values.
class TreeBuilder {
 public:
  using Kind = OptionValue::Kind;

  TreeBuilder(Fail fail, const Origin& origin) : fail_(std::move(fail)), origin_(origin) {}

  // Whether the next event must be a key.
  bool expects_key() const;
  void key(std::string text, int line);
  void scalar(Kind kind, std::string text, int line);
  void open(Kind kind, int line);
  void close();

  OptionValue take() && { return std::move(root_); }

 private:
  struct Level {
    OptionValue value;
    std::set<std::string> keys;
    std::string key;  // for the next value
    int key_line = 0;
    bool has_key = false;
  };

  void check_escapes(const std::string& text, int line) const;
  OptionValue value_of(Kind kind, int line) const;
  void add(OptionValue value);

  Fail fail_;
  Origin origin_;
  std::vector<Level> open_;  // the maps and lists around the next value, outermost first
  OptionValue root_;
};

}  // namespace nunchi::option_text
