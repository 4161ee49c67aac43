// Reading one JSON object into typed fields. Only .cpp files of models/ include this.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/base/nearest.h"
#include "nunchi/base/printable.h"

namespace nunchi {

// Parses text into an object. Throws Error naming `where` for bad JSON, for anything but an object
// and for nesting deeper than any file of ours has.
inline nlohmann::json parse_json_object(const std::string& text, const std::string& where) {
  constexpr int kDeepest = 16;
  int depth = 0;
  bool in_string = false;
  // The depth is counted before parsing: the parser itself keeps a level of state for each.
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth > kDeepest) throw Error(where + ": the JSON is nested too deeply.");
  }
  if (text.find('\0') != std::string::npos) throw Error(where + ": this is not valid JSON.");
  std::set<std::string> keys;
  std::string twice;
  const auto note_keys = [&](int level, nlohmann::json::parse_event_t event, nlohmann::json& part) {
    const bool outermost = level == 1 && event == nlohmann::json::parse_event_t::key;
    if (outermost && !keys.insert(part.get<std::string>()).second) twice = part.get<std::string>();
    return true;
  };
  nlohmann::json object = nlohmann::json::parse(text, note_keys, false);
  if (!twice.empty()) throw Error(where + ": the key '" + printable(twice) + "' is there twice.");
  if (object.is_discarded()) throw Error(where + ": this is not valid JSON.");
  if (!object.is_object()) throw Error(where + ": a JSON object { … } is expected.");
  return object;
}

// Takes keys one by one; finish() complains about what nobody took.
class JsonObject {
 public:
  JsonObject(nlohmann::json object, std::string where)
      : object_(std::move(object)), where_(std::move(where)) {}

  // A whole number from low to high; `field` keeps its default when the key is missing.
  template <class T>
  void integer(const std::string& key, T& field, std::int64_t low, std::int64_t high) {
    const nlohmann::json* value = take(key);
    if (value == nullptr) return;
    if (!value->is_number_integer() || *value < low || *value > high) {
      fail(key, "is a whole number from " + std::to_string(low) + " to " + std::to_string(high));
    }
    field = static_cast<T>(value->get<std::int64_t>());
  }

  // A number with 0 <= x < 1.
  void fraction(const std::string& key, float& field) {
    const nlohmann::json* value = take(key);
    if (value == nullptr) return;
    const double number = value->is_number() ? value->get<double>() : -1;
    const float narrow = static_cast<float>(number);
    if (!(narrow >= 0 && narrow < 1)) fail(key, "is a number from 0 up to, but not, 1");
    field = narrow;
  }

  template <class E>
  void choice(const std::string& key, E& field,
              const std::vector<std::pair<std::string, E>>& choices) {
    const nlohmann::json* value = take(key);
    if (value == nullptr) return;
    std::string all;
    for (const auto& [name, choice] : choices) {
      if (*value == name) {
        field = choice;
        return;
      }
      all += (all.empty() ? "" : " | ") + name;
    }
    fail(key, "is one of " + all);
  }

  void ignore(const std::string& key) { take(key); }

  void finish() const {
    for (const auto& [key, value] : object_.items()) {
      bool known = false;
      for (const std::string& taken : taken_) known = known || taken == key;
      if (known) continue;
      const std::string near = nearest(key, taken_);
      throw Error(where_ + ": unknown key '" + printable(key) + "'." +
                  (near.empty() ? "" : " Did you mean '" + near + "'?"));
    }
  }

 private:
  const nlohmann::json* take(const std::string& key) {
    taken_.push_back(key);
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  [[noreturn]] void fail(const std::string& key, const std::string& expected) const {
    throw Error(where_ + ": '" + key + "' " + expected + ".");
  }

  nlohmann::json object_;
  std::string where_;
  std::vector<std::string> taken_;
};

}  // namespace nunchi
