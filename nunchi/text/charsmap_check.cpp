#include "nunchi/text/charsmap_check.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/text/unicode.h"

namespace nunchi {
namespace {

// The library keeps so many matches of one text on its stack and does not look whether it has room.
constexpr int kMostMatches = 32;
constexpr std::size_t kLongestOutput = 64;

[[noreturn]] void refuse(const char* why) {
  throw Error(std::string("its rules for rewriting text are broken: ") + why);
}

std::uint32_t u32_at(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  return value;
}

struct Unit {
  std::uint32_t bits;

  bool ends_a_rule() const { return ((bits >> 8) & 1) != 0; }
  std::uint32_t value() const { return bits & 0x7FFFFFFFu; }
  // A unit that holds a value has its highest bit set and so no byte for a label.
  std::uint32_t label() const { return bits & 0x800000FFu; }
  std::uint32_t offset() const { return (bits >> 10) << ((bits & 0x200u) >> 6); }
};

// Visits what any text can reach.
class Walk {
 public:
  Walk(std::string_view trie, std::string_view outputs)
      : trie_(trie), outputs_(outputs), reached_(trie.size() / 4, false) {}

  void run() {
    std::vector<Node> open{{unit(0).offset(), 0}};
    while (!open.empty()) {
      const Node node = open.back();
      open.pop_back();
      // The next byte of a text may be any, so all 256 children are read.
      for (std::uint32_t byte = 0; byte < 256; ++byte) {
        const std::uint32_t place = node.children ^ byte;
        const Unit child = unit(place);
        if (child.label() != byte) continue;
        if (reached_[place]) refuse("the trie is not a tree");
        reached_[place] = true;
        Node next{place ^ child.offset(), node.matches};
        if (child.ends_a_rule()) {
          check_output(unit(next.children).value());
          if (++next.matches > kMostMatches) refuse("too many rules begin with one another");
        }
        open.push_back(next);
      }
    }
  }

 private:
  struct Node {
    std::uint32_t children;  // the place of the child with byte b is children ^ b
    int matches;             // rules that end on the way here
  };

  Unit unit(std::uint32_t place) const {
    if (place >= reached_.size()) refuse("the trie points outside of itself");
    return {u32_at(trie_, std::size_t{place} * 4)};
  }

  void check_output(std::uint32_t place) const {
    if (place >= outputs_.size()) refuse("a rule's text lies outside");
    const std::string_view text = outputs_.substr(place, outputs_.find('\0', place) - place);
    if (text.size() > kLongestOutput) refuse("a rule writes too much");
    if (!is_valid_utf8(text)) refuse("a rule writes what is not UTF-8");
  }

  std::string_view trie_, outputs_;
  std::vector<bool> reached_;
};

}  // namespace

void check_charsmap(std::string_view charsmap) {
  if (charsmap.size() < 4) refuse("the size is missing");
  const std::size_t trie_bytes = u32_at(charsmap, 0);
  charsmap.remove_prefix(4);
  if (trie_bytes >= charsmap.size()) refuse("the trie reaches past the end");
  if (trie_bytes == 0 || trie_bytes % 4 != 0) refuse("the trie is not made of whole units");
  if (charsmap.back() != '\0') refuse("the last text has no end");
  Walk(charsmap.substr(0, trie_bytes), charsmap.substr(trie_bytes)).run();
}

}  // namespace nunchi
