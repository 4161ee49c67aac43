#include "nunchi/base/key_hints.h"

#include <algorithm>

#include "nunchi/base/nearest.h"

namespace nunchi {
namespace {

constexpr std::size_t kMaxSuggestions = 3;

std::string_view last_part(std::string_view key) { return key.substr(key.rfind('.') + 1); }

std::string question(std::span<const std::string> keys) {
  std::string text = " Did you mean ";
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i > 0) text += i + 1 == keys.size() ? " or " : ", ";
    text += "'" + keys[i] + "'";
  }
  return text + "?";
}

// Keys of the unknown key's own map must be known there: a model has only the keys of its family.
bool exists(std::string_view key, const UnknownKey& unknown, const KeyHints& hints) {
  if (key.starts_with(unknown.map) && last_part(key).size() + unknown.map.size() == key.size()) {
    return std::ranges::find(unknown.known, last_part(key)) != unknown.known.end();
  }
  return std::ranges::find(hints.keys, key) != hints.keys.end();
}

// The keys elsewhere with this name.
std::vector<std::string> named(std::string_view name, const UnknownKey& unknown,
                               const KeyHints& hints) {
  std::vector<std::string> found;
  for (const std::string& key : hints.keys) {
    if (last_part(key) == name && exists(key, unknown, hints)) found.push_back(key);
  }
  return found;
}

std::vector<std::string> called_otherwise(const UnknownKey& unknown, const KeyHints& hints) {
  std::vector<std::string> found;
  for (const KeyAlias& alias : hints.aliases) {
    if (alias.name != unknown.name) continue;
    for (const std::string_view key : alias.keys) {
      if (exists(key, unknown, hints)) found.emplace_back(key);
    }
  }
  return found;
}

}  // namespace

std::string suggest(const UnknownKey& unknown, const KeyHints& hints) {
  std::vector<std::string> found = called_otherwise(unknown, hints);
  if (found.empty()) found = named(unknown.name, unknown, hints);
  if (found.empty()) {
    const std::string near = nearest(unknown.name, unknown.known);
    if (!near.empty()) found = {std::string(unknown.map) + near};
  }
  if (found.empty()) {
    std::vector<std::string> names;
    for (const std::string& key : hints.keys) names.emplace_back(last_part(key));
    const std::string near = nearest(unknown.name, names);
    if (!near.empty()) found = named(near, unknown, hints);
  }
  if (found.empty()) return {};
  found.resize(std::min(found.size(), kMaxSuggestions));
  return question(found);
}

}  // namespace nunchi
