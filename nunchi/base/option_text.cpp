// Trees of options as text; option_tree.cpp reads them.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "nunchi/base/option_tree.h"

namespace nunchi {
namespace {

using Kind = OptionValue::Kind;

// In JSON's quotes, which are YAML's too. Bytes that are no UTF-8 become U+FFFD: no reader has
// them.
std::string quoted(const std::string& text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_container(const OptionValue& value) {
  return value.kind == Kind::list || value.kind == Kind::map;
}

// Whether a scalar means the same without quotes; more would, but these are enough for names, paths
// and numbers.
bool may_stand_plain(const std::string& text) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/";
  constexpr std::string_view kMore = "<>+-.";
  const auto is_plain = [&](char c) {
    return kLetters.find(c) != kLetters.npos || kMore.find(c) != kMore.npos;
  };
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_plain)) return false;
  for (const std::string_view special : {"null", "Null", "NULL"}) {
    if (text == special) return false;
  }
  if (kLetters.find(text[0]) != kLetters.npos) return true;
  if (text[0] == '<') return !text.starts_with("<<");
  const bool second = text.find_first_of("0123456789./", 1) == 1;
  return text[0] != '>' && second && !text.starts_with("...");
}

// A text that looks like a number or a flag keeps its quotes, for other readers.
bool looks_like_literal(const std::string& text) {
  return text == "true" || text == "false" ||
         text.find_first_not_of("0123456789+-.eE") == text.npos;
}

std::string yaml_of(const OptionValue& value) {
  if (value.kind == Kind::nothing) return "null";
  const bool needs_quotes = value.kind == Kind::text && looks_like_literal(value.text);
  return may_stand_plain(value.text) && !needs_quotes ? value.text : quoted(value.text);
}

void append_yaml_lines(const OptionValue& value, const std::string& indent, std::string& out);

// What stands behind "key:" or "-", to the end of its line or lines.
void append_yaml_value(const OptionValue& value, const std::string& indent, std::string& out) {
  if (!is_container(value)) {
    out += " " + yaml_of(value) + "\n";
  } else if (value.kind == Kind::map && value.items.empty()) {
    out += " {}\n";
  } else if (value.kind == Kind::list &&
             std::none_of(value.items.begin(), value.items.end(), is_container)) {
    out += " [";
    const char* before = "";
    for (const OptionValue& item : value.items) out += std::exchange(before, ", ") + yaml_of(item);
    out += "]\n";
  } else {
    out += "\n";
    append_yaml_lines(value, indent, out);
  }
}

// The items of a map or a list, one below the other.
void append_yaml_lines(const OptionValue& value, const std::string& indent, std::string& out) {
  for (const OptionValue& item : value.items) {
    if (out.empty() || out.back() == '\n') out += indent;  // not behind a dash
    if (value.kind == Kind::map) {
      out += (may_stand_plain(item.key) ? item.key : quoted(item.key)) + ":";
      append_yaml_value(item, indent + "  ", out);
    } else if (item.kind == Kind::map && !item.items.empty()) {
      out += "- ";
      append_yaml_lines(item, indent + "  ", out);
    } else {
      out += "-";
      append_yaml_value(item, indent + "  ", out);
    }
  }
}

void append_json(const OptionValue& value, std::size_t indent, std::string& out) {
  const auto append_items = [&](char open, char close) {
    out += open;
    const char* before = "\n";
    for (const OptionValue& item : value.items) {
      out += std::exchange(before, ",\n") + std::string(indent + 2, ' ');
      if (value.kind == Kind::map) out += quoted(item.key) + ": ";
      append_json(item, indent + 2, out);
    }
    if (!value.items.empty()) out += "\n" + std::string(indent, ' ');
    out += close;
  };
  switch (value.kind) {
    case Kind::nothing:
      out += "null";
      return;
    case Kind::literal:
      out += value.text;
      return;
    case Kind::text:
    case Kind::plain:
      out += quoted(value.text);
      return;
    case Kind::list:
      append_items('[', ']');
      return;
    case Kind::map:
      append_items('{', '}');
  }
}

}  // namespace

std::string to_yaml(const OptionValue& map) {
  std::string out;
  append_yaml_lines(map, "", out);
  return out;
}

std::string to_json(const OptionValue& map) {
  std::string out;
  append_json(map, 0, out);
  return out + "\n";
}

}  // namespace nunchi
