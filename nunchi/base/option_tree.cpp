#include "nunchi/base/option_tree.h"

#include <algorithm>
#include <utility>

#include "nunchi/base/error.h"
#include "nunchi/base/json_options.h"
#include "nunchi/base/printable.h"
#include "nunchi/base/random_access_file.h"
#include "nunchi/base/yaml_options.h"

namespace nunchi {
namespace {

using Kind = OptionValue::Kind;

// "a.b" as a and b.
std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> keys(1);
  for (const char c : path) {
    if (c == '.') {
      keys.emplace_back();
    } else {
      keys.back() += c;
    }
  }
  return keys;
}

std::string where_in(const std::string& name, int line) {
  return line > 0 ? name + ":" + std::to_string(line) : name;
}

option_text::Fail make_fail(const std::string& name) {
  return [name](int line, const std::string& what) {
    throw Error(where_in(name, line) + ": " + what);
  };
}

}  // namespace

const OptionValue* OptionValue::find(std::string_view name) const {
  const auto found = std::find_if(items.begin(), items.end(),
                                  [&](const OptionValue& item) { return item.key == name; });
  return kind != Kind::map || found == items.end() ? nullptr : &*found;
}

Options Options::from_yaml(std::string_view text, const std::string& name) {
  Options read(name);
  read.root_ = option_text::parse_yaml(text, make_fail(name));
  if (read.root_.kind == Kind::nothing) read.root_.kind = Kind::map;
  if (read.root_.kind != Kind::map) {
    read.fail(read.root_, "expected lines of 'key: value'.");
  }
  return read;
}

Options Options::from_json(std::string_view text, const std::string& name) {
  Options read(name);
  read.root_ = option_text::parse_json(text, make_fail(name));
  if (read.root_.kind != Kind::map) {
    read.fail(read.root_, "expected a JSON object { … }.");
  }
  return read;
}

Options Options::read_yaml(const std::filesystem::path& file) {
  return from_yaml(read_small_file(file), file.string());
}

void Options::set(const std::string& assignment) {
  const std::string shown = "--set " + printable(assignment);
  const auto fail = [&](const std::string& what) { throw UsageError(shown + ": " + what); };
  const std::size_t equals = assignment.find('=');
  if (equals == assignment.npos) fail("expected key=value.");
  const auto fail_in_text = [&](int, const std::string& what) { fail(what); };
  option_text::check_text(assignment, fail_in_text);
  const std::vector<std::string> keys = split(assignment.substr(0, equals));
  if (keys.size() > option_text::kMaxDepth) fail(std::string(option_text::kTooDeep));
  for (const std::string& key : keys) {
    if (key.empty()) fail("a key is empty; join keys with single dots, as in model.dropout=0.1.");
    if (key.size() > option_text::kMaxKeyBytes) fail(std::string(option_text::kTooLong));
  }
  const std::size_t source = sources_.size();
  OptionValue value = option_text::parse_yaml(std::string_view(assignment).substr(equals + 1),
                                              fail_in_text, {source, keys.size()});
  OptionValue* target = &root_;
  for (const std::string& key : keys) {
    if (target->kind == Kind::nothing) target->kind = Kind::map;
    if (target->kind != Kind::map) {
      fail("'" + printable(target->key) + "' is not a map; set it as a whole.");
    }
    auto found = std::find_if(target->items.begin(), target->items.end(),
                              [&](const OptionValue& item) { return item.key == key; });
    if (found == target->items.end()) {
      found =
          target->items.insert(found, OptionValue{.key = key, .source = source, .implied = true});
    }
    target = &*found;
  }
  value.key = target->key;
  value.source = source;  // the parser does not set it if the text has no value
  *target = std::move(value);
  sources_.push_back(shown);
}

std::string Options::where(const OptionValue& value) const {
  return value.source == 0 ? where_in(sources_[0], value.line) : sources_[value.source];
}

void Options::fail(const OptionValue& value, const std::string& what) const {
  const OptionValue* single = &value;
  fail_together(std::span(&single, 1), what);
}

void Options::fail_together(std::span<const OptionValue* const> values,
                            const std::string& what) const {
  std::string message;
  for (const OptionValue* value : values) {
    message += (message.empty() ? "" : " and ") + where(*value);
  }
  message += ": " + what;
  if (values.front()->source != 0) throw UsageError(message);
  throw Error(message);
}

}  // namespace nunchi
