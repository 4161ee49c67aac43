// Options as they were written, before they are given a meaning: a tree of maps, lists and scalars
// from YAML or JSON text, which remembers the source and line of each value.
//
// The text is at most 1 MiB of UTF-8 without zero bytes, nested at most 16 deep; keys have at most
// 100 bytes, and none is twice in a map. Of YAML there is one document, without anchors, aliases
// and tags. Anything else is refused with an Error that names the file and the line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nunchi {

struct OptionValue {
  enum class Kind : std::uint8_t {
    nothing,  // "key:" in YAML, null in both
    text,     // quoted
    literal,  // JSON's numbers, true and false
    plain,    // YAML's unquoted scalars: a text, a number or a flag, whatever is asked for
    list,
    map,
  };

  Kind kind = Kind::nothing;
  std::string key;                 // in the map around it
  std::string text;                // of a scalar, without quotes
  std::vector<OptionValue> items;  // of a list or a map, in the order of the text
  std::size_t source = 0;          // which of the Options' sources it comes from
  int line = 0;                    // from 1; 0: not known

  // The item of a map with this key, or null.
  const OptionValue* find(std::string_view name) const;
};

// A whole tree; its root is a map.
class Options {
 public:
  // `name` names the text in errors.
  static Options from_yaml(std::string_view text, const std::string& name);
  static Options from_json(std::string_view text, const std::string& name);
  static Options read_yaml(const std::filesystem::path& file);

  // "training.max_steps=100" replaces the value of the key by 100, read as YAML; a list or a map is
  // replaced as a whole. Unknown keys are accepted here: the reader of the options refuses them and
  // names this assignment. Throws UsageError when the assignment itself is wrong.
  void set(const std::string& assignment);

  const OptionValue& root() const { return root_; }

  // "configs/tiny.yaml:14", or "--set model.dropout=0.2".
  std::string where(const OptionValue& value) const;
  // Throws "WHERE: WHAT" as an Error, or as a UsageError for a value from an assignment.
  [[noreturn]] void fail(const OptionValue& value, const std::string& what) const;

 private:
  explicit Options(const std::string& name) : sources_{name} {}

  OptionValue root_;
  std::vector<std::string> sources_;  // the file, then the assignments as they are shown
};

}  // namespace nunchi
