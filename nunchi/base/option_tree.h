// Options as written, before they are checked against a config: a tree of maps, lists and scalars
// from YAML or JSON text that keeps the source and line of each value.
//
// The text is at most 1 MiB of UTF-8 without zero bytes, nested at most 16 levels deep. Keys have
// at most 100 bytes and are unique in their map. YAML text is one document without anchors, aliases
// or tags. Anything else is refused with an Error that names the file and the line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nunchi {

// A node of the tree.
struct OptionValue {
  enum class Kind : std::uint8_t {
    nothing,  // "key:" in YAML, null in both
    text,     // quoted
    literal,  // JSON's numbers, true and false
    plain,    // YAML's unquoted scalars: the reader decides whether it is text, number or flag
    list,
    map,
  };

  Kind kind = Kind::nothing;
  std::string key;                 // its key if its parent is a map
  std::string text;                // the value of a scalar, without quotes
  std::vector<OptionValue> items;  // children of a list or a map, in the order of the text
  std::size_t source = 0;  // index into the Options' sources; 0: the text, not an assignment
  int line = 0;            // from 1; 0: not known
  bool implied = false;    // a map that exists because an assignment gave one of its keys

  // The item with this key; null if there is none or this is not a map.
  const OptionValue* find(std::string_view name) const;
};

// A whole tree; its root is a map.
class Options {
 public:
  // Error messages call the text `name`.
  static Options from_yaml(std::string_view text, const std::string& name);
  static Options from_json(std::string_view text, const std::string& name);
  static Options read_yaml(const std::filesystem::path& file);

  // "training.max_steps=100" replaces the value of the key by 100, parsed as YAML. A list or a map
  // is replaced as a whole. Unknown keys are accepted here: OptionReader refuses them and names
  // this assignment. Throws UsageError when the assignment itself is wrong.
  void set(const std::string& assignment);

  const OptionValue& root() const { return root_; }

  // "configs/tiny.yaml:14", or "--set model.dropout=0.2".
  std::string where(const OptionValue& value) const;
  // Throws "WHERE: WHAT" as an Error, or as a UsageError for a value from an assignment.
  [[noreturn]] void fail(const OptionValue& value, const std::string& what) const;
  // The same for values from several assignments: "WHERE and WHERE: WHAT".
  [[noreturn]] void fail_together(std::span<const OptionValue* const> values,
                                  const std::string& what) const;

 private:
  explicit Options(const std::string& name) : sources_{name} {}

  OptionValue root_;
  std::vector<std::string> sources_;  // the file, then the assignments as messages show them
};

}  // namespace nunchi
