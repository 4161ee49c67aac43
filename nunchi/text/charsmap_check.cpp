#include "nunchi/text/charsmap_check.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/text/unicode.h"

namespace nunchi {
namespace {

// The library stores the matches of one text in an array of this size without a bounds check.
constexpr int kMaxMatches = 32;
constexpr std::size_t kMaxOutputBytes = 64;

[[noreturn]] void refuse(const char* why) {
  throw Error(std::string("its rules for rewriting text are broken: ") + why);
}

std::uint32_t u32_at(std::string_view bytes, std::size_t offset) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value |= std::uint32_t{static_cast<unsigned char>(bytes[offset + i])} << (8 * i);
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

// Visits all units that a text can reach, depth first. Rules with the same ending share units, so a
// unit can be reached on several paths, but never from one of its descendants.
class Walk {
 public:
  Walk(std::string_view trie, std::string_view outputs)
      : trie_(trie), outputs_(outputs), matches_(trie.size() / 4, kUnseen) {}

  void run() {
    enter(0);
    while (!open_.empty()) {
      Node& node = open_.back();
      if (node.next_byte == 256) {
        leave();
        continue;
      }
      // Any byte can come next in a text, so all 256 children are visited.
      const std::uint32_t byte = node.next_byte++;
      const std::uint32_t index = node.children ^ byte;
      if (unit(index).label() != byte) continue;
      if (matches_[index] == kOpen) refuse("the trie has a cycle");
      if (matches_[index] == kUnseen) {
        enter(index);
      } else {
        node.matches = std::max(node.matches, matches_[index]);
      }
    }
  }

 private:
  static constexpr int kUnseen = -2, kOpen = -1;

  struct Node {
    std::uint32_t index;
    std::uint32_t children;       // the index of the child with byte b is children ^ b
    std::uint32_t next_byte = 0;  // the label of the child to visit next
    int matches = 0;              // largest number of rules that end on one path below this unit
  };

  void enter(std::uint32_t index) {
    const std::uint32_t children = index ^ unit(index).offset();
    matches_[index] = kOpen;
    if (unit(index).ends_a_rule()) check_output(unit(children).value());
    open_.push_back({index, children});
  }

  void leave() {
    const Node node = open_.back();
    open_.pop_back();
    const int matches = node.matches + (unit(node.index).ends_a_rule() ? 1 : 0);
    if (matches > kMaxMatches) refuse("too many rules are prefixes of one another");
    matches_[node.index] = matches;
    if (!open_.empty()) open_.back().matches = std::max(open_.back().matches, matches);
  }

  Unit unit(std::uint32_t index) const {
    if (index >= matches_.size()) refuse("the trie points outside of itself");
    return {u32_at(trie_, std::size_t{index} * 4)};
  }

  void check_output(std::uint32_t index) const {
    if (index >= outputs_.size()) refuse("a rule's output lies outside of the file");
    const std::string_view text = outputs_.substr(index, outputs_.find('\0', index) - index);
    if (text.size() > kMaxOutputBytes) refuse("a rule's output is too long");
    if (!is_valid_utf8(text)) refuse("a rule's output is not UTF-8");
  }

  std::string_view trie_, outputs_;
  // For each unit: kUnseen, kOpen, or the largest number of rules that end on one path from it.
  std::vector<int> matches_;
  std::vector<Node> open_;  // the path from the root to the current unit
};

}  // namespace

void check_charsmap(std::string_view charsmap) {
  if (charsmap.size() < 4) refuse("the size is missing");
  const std::size_t trie_bytes = u32_at(charsmap, 0);
  charsmap.remove_prefix(4);
  if (trie_bytes >= charsmap.size()) refuse("the trie reaches past the end");
  if (trie_bytes == 0 || trie_bytes % 4 != 0) refuse("the trie is not made of whole units");
  if (charsmap.back() != '\0') refuse("the last output is not terminated");
  Walk(charsmap.substr(0, trie_bytes), charsmap.substr(trie_bytes)).run();
}

}  // namespace nunchi
