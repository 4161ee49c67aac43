#include "nunchi/base/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "nunchi/base/printable.h"

namespace nunchi {
namespace {

using Kind = OptionValue::Kind;

// A quoted number is a text.
bool may_be_number(const OptionValue& value) {
  return value.kind == Kind::literal || value.kind == Kind::plain;
}
bool may_be_text(const OptionValue& value) {
  return value.kind == Kind::text || value.kind == Kind::plain;
}

// The end of a message about a wrong value: ", not 'abc'".
std::string but_was(const OptionValue& value) {
  switch (value.kind) {
    case Kind::nothing:
      return ", but the value is missing";
    case Kind::list:
      return ", not a list";
    case Kind::map:
      return ", not a map";
    case Kind::text:
      return ", not the text '" + printable(value.text) + "'";
    default:
      return ", not '" + printable(value.text) + "'";
  }
}

// The whole text as a number that both JSON and YAML accept, so neither 007 nor +7.
template <class T>
std::optional<T> number_in(std::string_view text) {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  const bool leading_zero =
      digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9';
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (leading_zero || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

OptionReader::OptionReader(const Options& options, MakeHints hints)
    : OptionReader(options, options.root(), "", std::move(hints)) {}

OptionReader::OptionReader(const Options& options, const OptionValue& map, std::string path,
                           MakeHints hints)
    : options_(&options), map_(&map), path_(std::move(path)), hints_(std::move(hints)) {}

bool OptionReader::take_word(std::string_view key, std::string_view word) {
  const OptionValue* value = take(key);
  return value != nullptr && may_be_text(*value) && value->text == word;
}

std::optional<std::int64_t> OptionReader::take_integer(std::string_view key, std::int64_t low,
                                                       std::int64_t high, std::string_view word) {
  const OptionValue* value = take(key);
  if (value == nullptr) return std::nullopt;
  const auto number = number_in<std::int64_t>(may_be_number(*value) ? value->text : "");
  if (!number || *number < low || *number > high) {
    expect(*value, key,
           fmt::format("a whole number from {} to {}{}{}", low, high, word.empty() ? "" : " or ",
                       word));
  }
  return number;
}

std::optional<double> OptionReader::take_number(std::string_view key, const Range& range) {
  const OptionValue* value = take(key);
  if (value == nullptr) return std::nullopt;
  const auto number = number_in<double>(may_be_number(*value) ? value->text : "");
  if (!number || !(*number >= range.low && *number <= range.high)) {
    expect(*value, key,
           range.expected.empty() ? fmt::format("a number from {} to {}", range.low, range.high)
                                  : range.expected);
  }
  return number;
}

std::optional<std::size_t> OptionReader::take_choice(std::string_view key,
                                                     std::span<const std::string_view> names) {
  const OptionValue* value = take(key);
  if (value == nullptr) return std::nullopt;
  const auto found = std::find(names.begin(), names.end(), value->text);
  if (!may_be_text(*value) || found == names.end()) {
    expect(*value, key, fmt::format("one of {}", fmt::join(names, " | ")));
  }
  return static_cast<std::size_t>(found - names.begin());
}

void OptionReader::flag(std::string_view key, bool& field) {
  const OptionValue* value = take(key);
  if (value == nullptr) return;
  const bool yes = value->text == "true", no = value->text == "false";
  if (!may_be_number(*value) || !(yes || no)) expect(*value, key, "true or false");
  field = yes;
}

void OptionReader::text(std::string_view key, std::string& field) {
  const OptionValue* value = take(key);
  if (value == nullptr) return;
  if (!may_be_text(*value)) expect(*value, key, "a text");
  field = value->text;
}

void OptionReader::path(std::string_view key, std::filesystem::path& field) {
  std::string name = field.string();
  text(key, name);
  field = name;
}

void OptionReader::integers(std::string_view key, std::vector<std::int32_t>& field,
                            std::int64_t low, std::int64_t high) {
  const OptionValue* value = take(key);
  if (value == nullptr) return;
  const std::string expected = fmt::format("a list of whole numbers from {} to {}", low, high);
  if (value->kind != Kind::list) expect(*value, key, expected);
  std::vector<std::int32_t> numbers;
  for (const OptionValue& item : value->items) {
    const auto number = number_in<std::int64_t>(may_be_number(item) ? item.text : "");
    if (!number || *number < low || *number > high) expect(item, key, expected);
    numbers.push_back(static_cast<std::int32_t>(*number));
  }
  field = std::move(numbers);
}

std::optional<std::vector<std::pair<std::int32_t, std::int32_t>>> OptionReader::take_pairs(
    std::string_view key, std::int64_t low, std::int64_t high) {
  const OptionValue* value = take(key);
  if (value == nullptr) return std::nullopt;
  const std::string expected =
      fmt::format("a list of pairs of whole numbers from {} to {}, [[0, 1], [2, 3]]", low, high);
  if (value->kind != Kind::list) expect(*value, key, expected);
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  for (const OptionValue& item : value->items) {
    if (item.kind != Kind::list || item.items.size() != 2) expect(item, key, expected);
    const auto number = [&](const OptionValue& part) {
      const auto read = number_in<std::int64_t>(may_be_number(part) ? part.text : "");
      if (!read || *read < low || *read > high) expect(part, key, expected);
      return static_cast<std::int32_t>(*read);
    };
    pairs.emplace_back(number(item.items[0]), number(item.items[1]));
  }
  return pairs;
}

void OptionReader::texts(std::string_view key, std::vector<std::string>& field) {
  const OptionValue* value = take(key);
  if (value == nullptr) return;
  if (value->kind != Kind::list) expect(*value, key, "a list of texts, [a, b]");
  std::vector<std::string> texts;
  for (const OptionValue& item : value->items) {
    if (!may_be_text(item)) expect(item, key, "a list of texts");
    texts.push_back(item.text);
  }
  field = std::move(texts);
}

void OptionReader::map(std::string_view key, const std::function<void(OptionReader&)>& read) {
  const OptionValue* value = take(key);
  if (value == nullptr) return;
  // A key whose lines are all commented out has no value: an empty map.
  if (value->kind != Kind::map && value->kind != Kind::nothing) expect(*value, key, "a map");
  OptionReader in(*options_, *value, full_key(key) + ".", hints_);
  read(in);
  in.finish();
}

bool OptionReader::take_maps(std::string_view key, const std::function<void(OptionReader&)>& read) {
  const OptionValue* value = take(key);
  if (value == nullptr) return false;
  if (value->kind != Kind::list) {
    map(key, read);
    return true;
  }
  for (std::size_t i = 0; i < value->items.size(); ++i) {
    const OptionValue& item = value->items[i];
    if (item.kind != Kind::map) expect(item, key, "a list of maps");
    OptionReader in(*options_, item, fmt::format("{}[{}].", full_key(key), i), hints_);
    read(in);
    in.finish();
  }
  return true;
}

void OptionReader::refuse(std::string_view key, const std::string& why) {
  if (const OptionValue* value = map_->find(key)) {
    options_->fail(*value, "'" + full_key(key) + "' cannot be given here: " + why);
  }
}

bool OptionReader::has(std::string_view key) const {
  const OptionValue* value = map_;
  while (value != nullptr && !key.empty()) {
    const std::size_t dot = std::min(key.find('.'), key.size());
    value = value->find(key.substr(0, dot));
    key.remove_prefix(std::min(dot + 1, key.size()));
  }
  return value != nullptr;
}

// The value of the key or, if the key is missing, the innermost map that would contain it.
const OptionValue& OptionReader::value_or_parent(std::string_view key) const {
  const OptionValue* value = map_;
  std::string_view rest = key;
  while (!rest.empty()) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    const OptionValue* inner = value->find(rest.substr(0, dot));
    if (inner == nullptr) break;
    value = inner;
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  return *value;
}

void OptionReader::fail(std::string_view key, const std::string& what) const {
  fail(std::span(&key, 1), what);
}

void OptionReader::fail(std::span<const std::string_view> keys, const std::string& what) const {
  std::vector<const OptionValue*> culprits;
  for (const std::string_view key : keys) {
    const OptionValue* value = assigned(key);
    const auto same_source = [&](const OptionValue* other) {
      return other->source == value->source;
    };
    if (value != nullptr && std::ranges::none_of(culprits, same_source)) culprits.push_back(value);
  }
  if (culprits.empty()) culprits = {&value_or_parent(keys.front())};
  options_->fail_together(culprits, "'" + full_key(keys.front()) + "' " + what + ".");
}

const OptionValue* OptionReader::assigned(std::string_view key) const {
  const OptionValue& value = value_or_parent(key);
  // An assignment to another key of the map is not to blame for a key that is missing there.
  return value.source != 0 && !value.implied ? &value : nullptr;
}

void OptionReader::finish() const {
  for (const OptionValue& item : map_->items) {
    if (std::find(known_keys_.begin(), known_keys_.end(), item.key) != known_keys_.end()) continue;
    const std::string suggestion =
        suggest({path_, item.key, known_keys_}, hints_ ? hints_() : KeyHints());
    options_->fail(item, "unknown key '" + full_key(printable(item.key)) + "'." + suggestion);
  }
}

const OptionValue* OptionReader::take(std::string_view key) {
  known_keys_.emplace_back(key);
  return map_->find(key);
}

std::string OptionReader::full_key(std::string_view key) const { return path_ + std::string(key); }

void OptionReader::expect(const OptionValue& value, std::string_view key,
                          const std::string& what) const {
  options_->fail(value, "'" + full_key(key) + "' must be " + what + but_was(value) + ".");
}

void OptionWriter::number(std::string_view key, float field, double, double) {
  add(key, Kind::literal, fmt::format("{}", field));
}

void OptionWriter::number(std::string_view key, double field, double, double) {
  add(key, Kind::literal, fmt::format("{}", field));
}

void OptionWriter::flag(std::string_view key, bool field) {
  add(key, Kind::literal, field ? "true" : "false");
}

void OptionWriter::text(std::string_view key, const std::string& field) {
  add(key, Kind::text, field);
}

void OptionWriter::path(std::string_view key, const std::filesystem::path& field) {
  if (!field.empty()) text(key, field.string());
}

void OptionWriter::integers(std::string_view key, const std::vector<std::int32_t>& field,
                            std::int64_t, std::int64_t) {
  if (field.empty()) return;
  OptionValue list{.kind = Kind::list};
  for (const std::int32_t number : field) {
    list.items.push_back({.kind = Kind::literal, .text = std::to_string(number)});
  }
  add(key, std::move(list));
}

void OptionWriter::add_pairs(std::string_view key,
                             std::span<const std::pair<std::int32_t, std::int32_t>> pairs) {
  if (pairs.empty()) return;
  const auto literal = [](std::int32_t number) {
    return OptionValue{.kind = Kind::literal, .text = std::to_string(number)};
  };
  OptionValue list{.kind = Kind::list};
  for (const auto& [first, second] : pairs) {
    list.items.push_back({.kind = Kind::list, .items = {literal(first), literal(second)}});
  }
  add(key, std::move(list));
}

void OptionWriter::texts(std::string_view key, const std::vector<std::string>& field) {
  OptionValue list{.kind = Kind::list};
  for (const std::string& text : field) list.items.push_back({.kind = Kind::text, .text = text});
  add(key, std::move(list));
}

void OptionWriter::map(std::string_view key, const std::function<void(OptionWriter&)>& write) {
  OptionWriter inner;
  write(inner);
  add(key, std::move(inner.map_));
}

void OptionWriter::leave_out(const std::function<bool(std::string_view key)>& matches) {
  std::erase_if(map_.items, [&](const OptionValue& item) { return matches(item.key); });
}

void OptionWriter::add(std::string_view key, OptionValue::Kind kind, std::string text) {
  add(key, OptionValue{.kind = kind, .text = std::move(text)});
}

void OptionWriter::add(std::string_view key, OptionValue value) {
  value.key = key;
  map_.items.push_back(std::move(value));
}

}  // namespace nunchi
