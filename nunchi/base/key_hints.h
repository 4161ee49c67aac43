// Suggestions for unknown keys of a config: keys with the same or a similar name anywhere in it,
// and keys whose names differ from those of other programs.
#pragma once

#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nunchi {

struct KeyAlias {
  std::string_view name;               // the last part of a key in other programs: "d_model"
  std::vector<std::string_view> keys;  // what it is called here: "model.width"
};

struct KeyHints {
  std::vector<std::string> keys;  // all keys of the config: "training.max_steps"
  std::span<const KeyAlias> aliases;
};

// A key that is unknown in its map.
struct UnknownKey {
  std::string_view map;                // "" or "model."
  std::string_view name;               // "d_model"
  std::span<const std::string> known;  // the names of the map
};

// " Did you mean 'model.width'?", or several keys; empty if there is no similar key.
std::string suggest(const UnknownKey& unknown, const KeyHints& hints);

// A visitor of fields (see options.h) that collects their keys.
class KeyCollector {
 public:
  void integer(std::string_view key, const auto&...) { add(key); }
  void integer_or(std::string_view key, const auto&...) { add(key); }
  void number(std::string_view key, const auto&...) { add(key); }
  void positive(std::string_view key, const auto&...) { add(key); }
  void fraction(std::string_view key, const auto&...) { add(key); }
  void flag(std::string_view key, const auto&...) { add(key); }
  void text(std::string_view key, const auto&...) { add(key); }
  void path(std::string_view key, const auto&...) { add(key); }
  void texts(std::string_view key, const auto&...) { add(key); }
  void choice(std::string_view key, const auto&...) { add(key); }

  void map(std::string_view key, const std::invocable<KeyCollector&> auto& visit) {
    add(key);
    KeyCollector inner;
    visit(inner);
    for (const std::string& name : inner.keys_) add(std::string(key) + "." + name);
  }
  template <class T, class Visit>
  void map(std::string_view key, const std::optional<T>&, const Visit& visit) {
    T item{};
    map(key, [&](KeyCollector& inner) { visit(inner, item); });
  }
  template <class T, class Visit>
  void maps(std::string_view key, const std::vector<T>&, const Visit& visit) {
    T item{};
    map(key, [&](KeyCollector& inner) { visit(inner, item); });
  }

  const std::vector<std::string>& keys() const { return keys_; }

 private:
  void add(std::string_view key) { keys_.emplace_back(key); }

  std::vector<std::string> keys_;
};

}  // namespace nunchi
