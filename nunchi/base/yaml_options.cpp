#include "nunchi/base/yaml_options.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "nunchi/base/json_options.h"

namespace nunchi::option_text {
namespace {

using Kind = OptionValue::Kind;

class YamlEvents : public YAML::EventHandler {
 public:
  YamlEvents(TreeBuilder& tree, const Fail& fail) : tree_(tree), fail_(fail) {}

  int last_line() const { return last_line_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (std::exchange(started_, true)) {
      fail_(line(mark),
            "a second YAML document starts here, but only one is read; is the indentation right?");
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    if (tree_.expects_key()) fail_(line(mark), "a key is missing.");
    tree_.scalar(Kind::nothing, "", line(mark));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse_anchor(mark, 1); }
  void OnAnchor(const YAML::Mark& mark, const std::string&) override { refuse_anchor(mark, 1); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (tree_.expects_key()) {
      tree_.key(value, line(mark));
    } else {
      tree_.scalar(tag == kQuoted ? Kind::text : Kind::plain, value, line(mark));
    }
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Kind::list, mark, tag, anchor);
  }
  void OnSequenceEnd() override { tree_.close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { tree_.close(); }

 private:
  // The tags that yaml-cpp reports for scalars without a tag.
  static constexpr std::string_view kQuoted = "!";
  static constexpr std::string_view kPlain = "?";

  int line(const YAML::Mark& mark) { return last_line_ = mark.line + 1; }

  void open(Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    refuse_key(mark);
    tree_.open(kind, line(mark));
  }
  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) fail_(line(mark), "anchors (&) and aliases (*) are not supported.");
  }
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag != kQuoted && tag != kPlain) fail_(line(mark), "tags (!) are not supported.");
  }
  void refuse_key(const YAML::Mark& mark) {
    if (tree_.expects_key())
      fail_(line(mark), "a key must be a text; is a bracket or a brace never closed?");
  }

  TreeBuilder& tree_;
  const Fail& fail_;
  bool started_ = false;
  int last_line_ = 1;  // of the last event
};

}  // namespace

OptionValue parse_yaml(std::string_view text, const Fail& fail, const Origin& origin) {
  check_text(text, fail);
  // At the end of the text yaml-cpp accepts a quoted scalar without its closing quote. An appended
  // comment makes that an error and changes nothing else.
  const bool whole_lines = text.empty() || text.ends_with('\n');
  std::istringstream stream(std::string(text) + (whole_lines ? "#" : "\n#"));
  const int lines = line_at(text, text.size() - (text.ends_with('\n') ? 1 : 0));
  const Fail fail_inside = [&](int line, const std::string& what) {
    fail(std::min(line, lines), what);
  };
  TreeBuilder tree(fail_inside, origin);
  YamlEvents events(tree, fail_inside);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(events)) {
    }
  } catch (const YAML::Exception& error) {
    if (error.msg == YAML::ErrorMsg::EOF_IN_SCALAR) {
      fail_inside(events.last_line(), "a quote that opens here or below is never closed.");
    }
    fail_inside(error.mark.line + 1, "this is not valid YAML (" + error.msg + ").");
  }
  return std::move(tree).take();
}

}  // namespace nunchi::option_text

namespace nunchi {
namespace {

using Kind = OptionValue::Kind;
using option_text::quoted;

bool is_container(const OptionValue& value) {
  return value.kind == Kind::list || value.kind == Kind::map;
}

// Whether a scalar means the same without quotes. Covers names, paths and numbers; some other
// scalars get quotes they do not need.
bool needs_no_quotes(const std::string& text) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/";
  constexpr std::string_view kSigns = "<>+-.";
  const auto is_plain = [&](char c) {
    return kLetters.find(c) != kLetters.npos || kSigns.find(c) != kSigns.npos;
  };
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_plain)) return false;
  for (const std::string_view special : {"null", "Null", "NULL"}) {
    if (text == special) return false;
  }
  if (kLetters.find(text[0]) != kLetters.npos) return true;
  if (text[0] == '<') return !text.starts_with("<<");
  const bool valid_second = text.find_first_of("0123456789./", 1) == 1;
  return text[0] != '>' && valid_second && !text.starts_with("...");
}

// Whether a text looks like a number or a flag: it keeps its quotes, for other YAML readers.
bool looks_like_literal(const std::string& text) {
  return text == "true" || text == "false" ||
         text.find_first_not_of("0123456789+-.eE") == text.npos;
}

std::string yaml_of(const OptionValue& value) {
  if (value.kind == Kind::nothing) return "null";
  const bool ambiguous = value.kind == Kind::text && looks_like_literal(value.text);
  return needs_no_quotes(value.text) && !ambiguous ? value.text : quoted(value.text);
}

void append_yaml_lines(const OptionValue& value, const std::string& indent, std::string& out);

// The value after "key:" or "-", with its line end.
void append_yaml_value(const OptionValue& value, const std::string& indent, std::string& out) {
  if (!is_container(value)) {
    out += " " + yaml_of(value) + "\n";
  } else if (value.kind == Kind::map && value.items.empty()) {
    out += " {}\n";
  } else if (value.kind == Kind::list &&
             std::none_of(value.items.begin(), value.items.end(), is_container)) {
    out += " [";
    const char* separator = "";
    for (const OptionValue& item : value.items)
      out += std::exchange(separator, ", ") + yaml_of(item);
    out += "]\n";
  } else {
    out += "\n";
    append_yaml_lines(value, indent, out);
  }
}

// The items of a map or a list, one per line or block.
void append_yaml_lines(const OptionValue& value, const std::string& indent, std::string& out) {
  for (const OptionValue& item : value.items) {
    if (out.empty() || out.back() == '\n') out += indent;  // not after a dash
    if (value.kind == Kind::map) {
      out += (needs_no_quotes(item.key) ? item.key : quoted(item.key)) + ":";
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

}  // namespace

std::string to_yaml(const OptionValue& map) {
  std::string out;
  append_yaml_lines(map, "", out);
  return out;
}

}  // namespace nunchi
