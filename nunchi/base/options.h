// Options as typed fields with defaults. A config struct is described once, field by field:
//
//   void fields(auto& in, auto& config) {   // const for the writer
//     in.integer("layers", config.layers, 1, 64);
//     in.fraction("dropout", config.dropout);
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
#include <vector>

#include "nunchi/base/option_tree.h"

namespace nunchi {

// A name for each value of an enum.
template <class E>
struct Choice {
  std::string_view name;
  E value;
};
template <class E>
Choice(const char*, E) -> Choice<E>;

template <class E>
std::string_view name_in(const auto& choices, E value) {
  for (const Choice<E>& choice : choices) {
    if (choice.value == value) return choice.name;
  }
  return "";
}

// Throws an error about options that do not fit together: the message is about the first of these
// keys, the others may be the cause. See OptionReader::fail.
using FailOption =
    std::function<void(std::initializer_list<std::string_view> keys, const std::string& what)>;

// Reads the fields of one map. A field whose key is missing keeps its value; a wrong value, and in
// finish() an unknown key, is an Error with the file and line. The Options outlive the reader.
class OptionReader {
 public:
  explicit OptionReader(const Options& options);

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
    const double least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
    if (const auto value = take_number(key, {least, most, "a number above 0"})) {
      field = static_cast<T>(*value);
    }
  }
  // A number with 0 <= x < 1.
  template <std::floating_point T>
  void fraction(std::string_view key, T& field) {
    const double most = 1 - std::numeric_limits<T>::epsilon();
    if (const auto value = take_number(key, {0, most, "a number from 0 up to, but not, 1"})) {
      field = static_cast<T>(*value);
    }
  }

  // A whole number from low to high that may be missing: the field is `none` then.
  template <std::integral T>
  void optional_integer(std::string_view key, T& field, std::int64_t low, std::int64_t high,
                        T /*none*/) {
    integer(key, field, low, high);
  }
  // A list of whole numbers from low to high.
  void integers(std::string_view key, std::vector<std::int32_t>& field, std::int64_t low,
                std::int64_t high);

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

  // The same for an optional map: read(reader, value).
  template <class T, class Read>
  void map(std::string_view key, std::optional<T>& field, const Read& read) {
    map(key, [&](OptionReader& in) { read(in, field.emplace()); });
  }

  // A list of maps: read(reader, item) is called for each with a new item. A single map is a list
  // of one.
  template <class T, class Read>
  void maps(std::string_view key, std::vector<T>& field, const Read& read) {
    std::vector<T> items;
    if (!take_maps(key, [&](OptionReader& in) { read(in, items.emplace_back()); })) return;
    field = std::move(items);
  }

  // Refuses a key that is valid elsewhere; `why` is a sentence.
  void refuse(std::string_view key, const std::string& why);

  // Whether the key is given; with dots, in a map below.
  bool has(std::string_view key) const;
  // Throws "WHERE: 'KEY' WHAT." about a key of this map or, with dots, of a map below.
  [[noreturn]] void fail(std::string_view key, const std::string& what) const;
  // The same about the first of several keys that do not fit together. WHERE is the first of them
  // that was set on the command line, if any was.
  [[noreturn]] void fail(std::span<const std::string_view> keys, const std::string& what) const;
  [[noreturn]] void fail(std::initializer_list<std::string_view> keys,
                         const std::string& what) const {
    fail(std::span(keys.begin(), keys.size()), what);
  }
  // fail() as a function.
  FailOption failing() const {
    return [this](std::initializer_list<std::string_view> keys, const std::string& what) {
      fail(keys, what);
    };
  }
  // The file and line of this map.
  std::string where() const { return options_->where(*map_); }

  // Throws for the first key that was not read, naming the most similar key that was.
  void finish() const;

 private:
  struct Range {
    double low, high;
    std::string words;  // of the error message; empty: "a number from LOW to HIGH"
  };

  OptionReader(const Options& options, const OptionValue& map, std::string path);

  const OptionValue* take(std::string_view key);
  const OptionValue& nearest_to(std::string_view key) const;
  std::optional<std::int64_t> take_integer(std::string_view key, std::int64_t low,
                                           std::int64_t high);
  std::optional<double> take_number(std::string_view key, const Range& range);
  std::optional<std::size_t> take_choice(std::string_view key,
                                         std::span<const std::string_view> names);
  bool take_maps(std::string_view key, const std::function<void(OptionReader&)>& read);
  std::string full(std::string_view key) const;
  [[noreturn]] void expect(const OptionValue& value, std::string_view key,
                           const std::string& what) const;

  const Options* options_;
  const OptionValue* map_;
  std::string path_;  // of the map: "" or "model."
  std::vector<std::string> taken_;
};

// Makes a map from the fields, each with its value.
class OptionWriter {
 public:
  template <std::integral T>
  void integer(std::string_view key, T field, std::int64_t, std::int64_t) {
    add(key, OptionValue::Kind::literal, std::to_string(field));
  }
  // A field that is `none` is not written, nor is an empty list of whole numbers.
  template <std::integral T>
  void optional_integer(std::string_view key, T field, std::int64_t low, std::int64_t high,
                        T none) {
    if (field != none) integer(key, field, low, high);
  }
  void integers(std::string_view key, const std::vector<std::int32_t>& field, std::int64_t,
                std::int64_t);
  void number(std::string_view key, float field, double, double);
  void number(std::string_view key, double field, double, double);
  void positive(std::string_view key, auto field) { number(key, field, 0, 0); }
  void fraction(std::string_view key, auto field) { number(key, field, 0, 0); }
  void flag(std::string_view key, bool field);
  void text(std::string_view key, const std::string& field);
  // An empty path is not written.
  void path(std::string_view key, const std::filesystem::path& field);
  void texts(std::string_view key, const std::vector<std::string>& field);

  template <class E>
  void choice(std::string_view key, E field, const auto& choices) {
    text(key, std::string(name_in(choices, field)));
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

  // Removes the fields whose keys `which` is true for.
  void leave_out(const std::function<bool(std::string_view key)>& which);

  const OptionValue& tree() const { return map_; }

 private:
  void add(std::string_view key, OptionValue::Kind kind, std::string text);
  void add(std::string_view key, OptionValue value);

  OptionValue map_{.kind = OptionValue::Kind::map};
};

}  // namespace nunchi
