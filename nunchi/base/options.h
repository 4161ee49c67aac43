// Options as typed fields with defaults. A config struct is described once, field by field:
//
//   void visit_fields(auto& visitor, auto& config) {  // const for the writer
//     visitor.integer("layers", config.layers, 1, 64);
//     visitor.fraction("dropout", config.dropout);
//   }
//
// An OptionReader takes the fields from a tree, an OptionWriter makes the tree from them.
#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nunchi/base/key_hints.h"
#include "nunchi/base/option_tree.h"

namespace nunchi {

// The name of an enum's value in option texts.
template <class E>
struct Choice {
  std::string_view name;
  E value;
};
template <class E>
Choice(const char*, E) -> Choice<E>;

// The name of `value`; empty if `choices` lacks it.
template <class E>
std::string_view choice_name(const auto& choices, E value) {
  for (const Choice<E>& choice : choices) {
    if (choice.value == value) return choice.name;
  }
  return "";
}

// A number that is written as a word: "auto".
template <class T>
struct NamedNumber {
  std::string_view word;
  T value;
};

// Throws an error about options that contradict one another. The message is about the first key;
// the other keys may be the cause. See OptionReader::fail.
using FailOption =
    std::function<void(std::initializer_list<std::string_view> keys, const std::string& what)>;

// Reads the fields of one map. A field whose key is missing keeps its value; a wrong value, and in
// finish() an unknown key, is an Error with the file and line. The Options must outlive the reader.
class OptionReader {
 public:
  // `hints` are made when a key is unknown; without hints only keys of the same map are suggested.
  using MakeHints = std::function<KeyHints()>;
  explicit OptionReader(const Options& options, MakeHints hints = {});

  // A whole number from low to high, written in digits only: no 1e3, no 12_000.
  template <std::integral T>
  void integer(std::string_view key, T& field, std::int64_t low, std::int64_t high) {
    if (const auto value = take_integer(key, low, high)) field = static_cast<T>(*value);
  }

  // A number from low to high; never NaN or infinite.
  template <std::floating_point T>
  void number(std::string_view key, T& field, double low, double high) {
    if (const auto value = take_number(key, {.low = low, .high = high})) {
      field = static_cast<T>(*value);
    }
  }
  // A number above 0.
  template <std::floating_point T>
  void positive(std::string_view key, T& field) {
    const double low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    if (const auto value = take_number(key, {low, high, "a number above 0"})) {
      field = static_cast<T>(*value);
    }
  }
  // A number x with 0 <= x < 1.
  template <std::floating_point T>
  void fraction(std::string_view key, T& field) {
    const double high = 1 - std::numeric_limits<T>::epsilon();
    if (const auto value = take_number(key, {0, high, "at least 0 and below 1"})) {
      field = static_cast<T>(*value);
    }
  }

  // A whole number from low to high. `none` is the field's value when the key is missing; only the
  // writer needs it.
  template <std::integral T>
  void optional_integer(std::string_view key, T& field, std::int64_t low, std::int64_t high,
                        T /*none*/) {
    integer(key, field, low, high);
  }
  // The same, or the word `word`, which sets the field to `value`.
  template <std::integral T>
  void integer_or(std::string_view key, T& field, std::int64_t low, std::int64_t high,
                  const NamedNumber<T>& named) {
    if (take_word(key, named.word)) {
      field = named.value;
    } else if (const auto value = take_integer(key, low, high, named.word)) {
      field = static_cast<T>(*value);
    }
  }
  // A list of whole numbers from low to high.
  void integers(std::string_view key, std::vector<std::int32_t>& field, std::int64_t low,
                std::int64_t high);
  // A list of pairs of such numbers; T is an aggregate of two of them.
  template <class T>
  void integer_pairs(std::string_view key, std::vector<T>& field, std::int64_t low,
                     std::int64_t high) {
    const auto pairs = take_pairs(key, low, high);
    if (!pairs) return;
    field.clear();
    for (const auto& [first, second] : *pairs) field.push_back({first, second});
  }

  void flag(std::string_view key, bool& field);  // true | false
  void text(std::string_view key, std::string& field);
  void path(std::string_view key, std::filesystem::path& field);
  void texts(std::string_view key, std::vector<std::string>& field);

  // `choices` is an array or a vector of Choice<E>.
  template <class E>
  void choice(std::string_view key, E& field, const auto& choices) {
    std::vector<std::string_view> names;
    names.reserve(std::size(choices));
    for (const Choice<E>& choice : choices) names.push_back(choice.name);
    if (const auto chosen = take_choice(key, names)) field = choices[*chosen].value;
  }

  // Calls read(reader) for the map at `key`, then finish().
  void map(std::string_view key, const std::function<void(OptionReader&)>& read);

  // The same for an optional map: calls read(reader, value) with a new value.
  template <class T, class Read>
  void map(std::string_view key, std::optional<T>& field, const Read& read) {
    map(key, [&](OptionReader& in) { read(in, field.emplace()); });
  }

  // A list of maps: calls read(reader, item) for each map with a new item. A single map counts as a
  // list of one.
  template <class T, class Read>
  void maps(std::string_view key, std::vector<T>& field, const Read& read) {
    std::vector<T> items;
    if (!take_maps(key, [&](OptionReader& in) { read(in, items.emplace_back()); })) return;
    field = std::move(items);
  }

  // Throws if the key, which is valid elsewhere, is given here; `why` is a sentence.
  void refuse(std::string_view key, const std::string& why);

  // Whether the key is given. A key with dots is in an inner map.
  bool has(std::string_view key) const;
  // Throws "WHERE: 'KEY' WHAT." about a key of this map or, with dots, of an inner map.
  [[noreturn]] void fail(std::string_view key, const std::string& what) const;
  // The same about the first of several keys that contradict one another. WHERE names all of them
  // that --set gave, otherwise the first key.
  [[noreturn]] void fail(std::span<const std::string_view> keys, const std::string& what) const;
  [[noreturn]] void fail(std::initializer_list<std::string_view> keys,
                         const std::string& what) const {
    fail(std::span(keys.begin(), keys.size()), what);
  }
  // fail() as a callback; the reader must outlive it.
  FailOption failing() const {
    return [this](std::initializer_list<std::string_view> keys, const std::string& what) {
      fail(keys, what);
    };
  }
  // The file and line of this map.
  std::string where() const { return options_->where(*map_); }

  // Throws for the first key that no field has read and suggests similar known keys.
  void finish() const;

 private:
  struct Range {
    double low, high;
    std::string expected;  // for the error message; empty: "a number from LOW to HIGH"
  };

  OptionReader(const Options& options, const OptionValue& map, std::string path, MakeHints hints);

  const OptionValue* take(std::string_view key);
  const OptionValue& value_or_parent(std::string_view key) const;
  // The value of the key, or the map that should have it, if an assignment gave it; else null.
  const OptionValue* assigned(std::string_view key) const;
  // `word` is what may be written instead of a number; the error message names it.
  std::optional<std::int64_t> take_integer(std::string_view key, std::int64_t low,
                                           std::int64_t high, std::string_view word = {});
  // Whether the value of the key is this word.
  bool take_word(std::string_view key, std::string_view word);
  std::optional<std::vector<std::pair<std::int32_t, std::int32_t>>> take_pairs(std::string_view key,
                                                                               std::int64_t low,
                                                                               std::int64_t high);
  std::optional<double> take_number(std::string_view key, const Range& range);
  std::optional<std::size_t> take_choice(std::string_view key,
                                         std::span<const std::string_view> names);
  bool take_maps(std::string_view key, const std::function<void(OptionReader&)>& read);
  std::string full_key(std::string_view key) const;
  [[noreturn]] void expect(const OptionValue& value, std::string_view key,
                           const std::string& what) const;

  const Options* options_;
  const OptionValue* map_;
  std::string path_;  // prefix of the map's keys: "" or "model."
  MakeHints hints_;
  std::vector<std::string> known_keys_;
};

// Makes a map from the fields; the opposite of OptionReader.
class OptionWriter {
 public:
  template <std::integral T>
  void integer(std::string_view key, T field, std::int64_t, std::int64_t) {
    add(key, OptionValue::Kind::literal, std::to_string(field));
  }
  // Writes nothing if the field is `none`.
  template <std::integral T>
  void optional_integer(std::string_view key, T field, std::int64_t low, std::int64_t high,
                        T none) {
    if (field != none) integer(key, field, low, high);
  }
  template <std::integral T>
  void integer_or(std::string_view key, T field, std::int64_t low, std::int64_t high,
                  const NamedNumber<T>& named) {
    if (field == named.value) {
      text(key, std::string(named.word));
    } else {
      integer(key, field, low, high);
    }
  }
  // Both write nothing for an empty list.
  void integers(std::string_view key, const std::vector<std::int32_t>& field, std::int64_t,
                std::int64_t);
  template <class T>
  void integer_pairs(std::string_view key, const std::vector<T>& field, std::int64_t,
                     std::int64_t) {
    std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
    pairs.reserve(field.size());
    for (const auto& [first, second] : field) pairs.emplace_back(first, second);
    add_pairs(key, pairs);
  }
  void number(std::string_view key, float field, double, double);
  void number(std::string_view key, double field, double, double);
  void positive(std::string_view key, auto field) { number(key, field, 0, 0); }
  void fraction(std::string_view key, auto field) { number(key, field, 0, 0); }
  void flag(std::string_view key, bool field);
  void text(std::string_view key, const std::string& field);
  // Writes nothing for an empty path.
  void path(std::string_view key, const std::filesystem::path& field);
  void texts(std::string_view key, const std::vector<std::string>& field);

  template <class E>
  void choice(std::string_view key, E field, const auto& choices) {
    text(key, std::string(choice_name(choices, field)));
  }

  void map(std::string_view key, const std::function<void(OptionWriter&)>& write);

  template <class T, class Write>
  void map(std::string_view key, const std::optional<T>& field, const Write& write) {
    if (field) map(key, [&](OptionWriter& out) { write(out, *field); });
  }

  template <class T, class Write>
  void maps(std::string_view key, const std::vector<T>& field, const Write& write) {
    OptionValue list;
    list.kind = OptionValue::Kind::list;
    for (const T& item : field) {
      OptionWriter out;
      write(out, item);
      list.items.push_back(std::move(out.map_));
    }
    add(key, std::move(list));
  }

  // Removes the fields for whose key `matches` is true.
  void leave_out(const std::function<bool(std::string_view key)>& matches);

  const OptionValue& tree() const { return map_; }

 private:
  void add_pairs(std::string_view key,
                 std::span<const std::pair<std::int32_t, std::int32_t>> pairs);
  void add(std::string_view key, OptionValue::Kind kind, std::string text);
  void add(std::string_view key, OptionValue value);

  OptionValue map_{.kind = OptionValue::Kind::map};
};

}  // namespace nunchi
