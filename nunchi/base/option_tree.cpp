#include "nunchi/base/option_tree.h"

#include <utf8proc.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "nunchi/base/error.h"
#include "nunchi/base/mapped_file.h"
#include "nunchi/base/printable.h"

namespace nunchi {
namespace {

using Kind = OptionValue::Kind;

constexpr std::size_t kLargestText = 1 << 20;
constexpr std::size_t kDeepest = 16;
constexpr std::size_t kLongestKey = 100;
constexpr std::string_view kTooLarge = "more than 1 MiB is too large for options.";
constexpr std::string_view kTooLong = "a key is longer than 100 bytes.";
constexpr std::string_view kTooDeep = "this is nested too deeply; 16 levels are allowed.";

// Throws an error about a line of the text, if the line is known (from 1).
using Fail = std::function<void(int line, const std::string& what)>;

int line_at(std::string_view text, std::size_t place) {
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + place, '\n'));
}

// The place of the first byte that is no part of a character; npos when there is none.
std::size_t invalid_utf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (std::size_t at = 0; at < text.size();) {
    utf8proc_int32_t character = 0;
    const auto left = static_cast<utf8proc_ssize_t>(text.size() - at);
    const utf8proc_ssize_t length = utf8proc_iterate(bytes + at, left, &character);
    if (length <= 0) return at;
    at += static_cast<std::size_t>(length);
  }
  return text.npos;
}

void check_text(std::string_view text, const Fail& fail) {
  if (text.size() > kLargestText) fail(0, std::string(kTooLarge));
  if (const std::size_t zero = text.find('\0'); zero != text.npos) {
    fail(line_at(text, zero), "there is a zero byte; is this a text file?");
  }
  if (const std::size_t wrong = invalid_utf8(text); wrong != text.npos) {
    fail(line_at(text, wrong), "this is not valid UTF-8.");
  }
}

// Puts a tree together from a parser's events.
class TreeBuilder {
 public:
  // Errors come from `fail`; `source` and, if the tree is to hang in another, its depth there.
  TreeBuilder(Fail fail, std::size_t source, std::size_t depth)
      : fail_(std::move(fail)), source_(source), depth_(depth) {}

  bool wants_key() const {
    return !open_.empty() && open_.back().value.kind == Kind::map && !open_.back().has_key;
  }

  void key(std::string text, int line) {
    Level& level = open_.back();
    check_escapes(text, line);
    if (text.size() > kLongestKey) fail_(line, std::string(kTooLong));
    if (!level.keys.insert(text).second) {
      fail_(line, "the key '" + printable(text) + "' is there twice.");
    }
    level.key = std::move(text);
    level.key_line = line;
    level.has_key = true;
  }

  void scalar(Kind kind, std::string text, int line) {
    check_escapes(text, line);
    OptionValue value = value_of(kind, line);
    value.text = std::move(text);
    add(std::move(value));
  }

  void open(Kind kind, int line) {
    if (depth_ + open_.size() >= kDeepest) fail_(line, std::string(kTooDeep));
    open_.push_back({.value = value_of(kind, line)});
  }

  void close() {
    OptionValue value = std::move(open_.back().value);
    open_.pop_back();
    add(std::move(value));
  }

  OptionValue take() && { return std::move(root_); }

 private:
  struct Level {
    OptionValue value;
    std::set<std::string> keys;
    std::string key;  // whose value comes next
    int key_line = 0;
    bool has_key = false;
  };

  // \0 would end names of files, and yaml-cpp makes single bytes of \_ and \N.
  void check_escapes(const std::string& text, int line) const {
    if (text.find('\0') != text.npos || invalid_utf8(text) != text.npos) {
      fail_(line, "an escape (\\) stands for no character of a text.");
    }
  }

  OptionValue value_of(Kind kind, int line) const {
    OptionValue value;
    value.kind = kind;
    value.source = source_;
    value.line = line;
    return value;
  }

  void add(OptionValue value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    Level& level = open_.back();
    if (std::exchange(level.has_key, false)) {
      value.key = std::move(level.key);
      value.line = level.key_line;
    }
    level.value.items.push_back(std::move(value));
  }

  Fail fail_;
  std::size_t source_;
  std::size_t depth_;
  std::vector<Level> open_;
  OptionValue root_;
};

class YamlEvents : public YAML::EventHandler {
 public:
  YamlEvents(TreeBuilder& tree, const Fail& fail) : tree_(tree), fail_(fail) {}

  int last_line() const { return last_line_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (std::exchange(started_, true)) {
      fail_(line(mark),
            "a second document begins, and only one is read; is the indentation right?");
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    if (tree_.wants_key()) fail_(line(mark), "a key is missing.");
    tree_.scalar(Kind::nothing, "", line(mark));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse_anchor(mark, 1); }
  void OnAnchor(const YAML::Mark& mark, const std::string&) override { refuse_anchor(mark, 1); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (tree_.wants_key()) {
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
  // What the parser gives as the tag of scalars that have none.
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
    if (anchor != 0) fail_(line(mark), "anchors (&) and aliases (*) are not read.");
  }
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag != kQuoted && tag != kPlain) fail_(line(mark), "tags (!) are not read.");
  }
  void refuse_key(const YAML::Mark& mark) {
    if (tree_.wants_key())
      fail_(line(mark), "a key is not a text; is a bracket or a brace never closed?");
  }

  TreeBuilder& tree_;
  const Fail& fail_;
  bool started_ = false;
  int last_line_ = 1;  // of the last event
};

// `source` and `depth` are the tree's, see TreeBuilder.
OptionValue parse_yaml(std::string_view text, const Fail& fail, std::size_t source = 0,
                       std::size_t depth = 0) {
  check_text(text, fail);
  // yaml-cpp takes the end of the last line for the missing end of a quoted scalar. A comment there
  // is nothing to a whole text and inside an open quote an error.
  const bool whole_lines = text.empty() || text.ends_with('\n');
  std::istringstream stream(std::string(text) + (whole_lines ? "#" : "\n#"));
  const int lines = line_at(text, text.size() - (text.ends_with('\n') ? 1 : 0));
  const Fail fail_inside = [&](int line, const std::string& what) {
    fail(std::min(line, lines), what);
  };
  TreeBuilder tree(fail_inside, source, depth);
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

// The bytes of a text, counted: nlohmann's parser does not tell in which line it is.
struct CountingIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at;
  std::size_t* read;

  reference operator*() const { return *at; }
  CountingIterator& operator++() {
    ++at;
    ++*read;
    return *this;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at == b.at;
  }
};

// nlohmann's events; every function returns whether to go on.
class JsonEvents {
 public:
  JsonEvents(std::string_view text, TreeBuilder& tree, const Fail& fail)
      : text_(text), tree_(tree), fail_(fail) {}

  std::size_t* read() { return &read_; }

  bool null() { return add(Kind::nothing, ""); }
  bool boolean(bool value) { return add(Kind::literal, value ? "true" : "false"); }
  bool number_integer(std::int64_t value) { return add(Kind::literal, std::to_string(value)); }
  bool number_unsigned(std::uint64_t value) { return add(Kind::literal, std::to_string(value)); }
  bool number_float(double, const std::string& text) { return add(Kind::literal, text); }
  bool string(std::string& text) { return add(Kind::text, std::move(text)); }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Kind::map); }
  bool start_array(std::size_t) { return open(Kind::list); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& text) {
    tree_.key(std::move(text), line());
    return true;
  }
  bool parse_error(std::size_t, const std::string& token,
                   const nlohmann::detail::exception& error) {
    constexpr int kNumberOutOfRange = 406;
    if (error.id == kNumberOutOfRange) {
      fail_(line(), "the number " + printable(token) + " is too large.");
    }
    fail_(line(), "this is not valid JSON.");
    return false;
  }

 private:
  // Behind a number the parser has read one byte more, perhaps the end of its line.
  int line() {
    const std::size_t before = read_ == 0 ? 0 : read_ - 1;
    for (; counted_ < before; ++counted_) line_ += text_[counted_] == '\n' ? 1 : 0;
    return line_;
  }
  bool add(Kind kind, std::string text) {
    tree_.scalar(kind, std::move(text), line());
    return true;
  }
  bool open(Kind kind) {
    tree_.open(kind, line());
    return true;
  }
  bool close() {
    tree_.close();
    return true;
  }

  std::string_view text_;
  TreeBuilder& tree_;
  const Fail& fail_;
  std::size_t read_ = 0;
  std::size_t counted_ = 0;  // bytes whose line ends are in line_
  int line_ = 1;
};

OptionValue parse_json(std::string_view text, const Fail& fail) {
  check_text(text, fail);
  TreeBuilder tree(fail, 0, 0);
  JsonEvents events(text, tree, fail);
  nlohmann::json::sax_parse(CountingIterator{text.data(), events.read()},
                            CountingIterator{text.data() + text.size(), events.read()}, &events);
  return std::move(tree).take();
}

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

std::string place_in(const std::string& name, int line) {
  return line > 0 ? name + ":" + std::to_string(line) : name;
}

Fail failing_in(const std::string& name) {
  return [name](int line, const std::string& what) {
    throw Error(place_in(name, line) + ": " + what);
  };
}

}  // namespace

const OptionValue* OptionValue::find(std::string_view name) const {
  const auto found = std::find_if(items.begin(), items.end(),
                                  [&](const OptionValue& item) { return item.key == name; });
  return kind != Kind::map || found == items.end() ? nullptr : &*found;
}

Options Options::from_yaml(std::string_view text, const std::string& name) {
  Options options(name);
  options.root_ = parse_yaml(text, failing_in(name));
  if (options.root_.kind == Kind::nothing) options.root_.kind = Kind::map;
  if (options.root_.kind != Kind::map) {
    options.fail(options.root_, "lines of 'key: value' are expected.");
  }
  return options;
}

Options Options::from_json(std::string_view text, const std::string& name) {
  Options options(name);
  options.root_ = parse_json(text, failing_in(name));
  if (options.root_.kind != Kind::map) {
    options.fail(options.root_, "a JSON object { … } is expected.");
  }
  return options;
}

Options Options::read_yaml(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  const std::span<const std::byte> bytes = mapped.bytes();
  return from_yaml({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file.string());
}

void Options::set(const std::string& assignment) {
  const std::string shown = "--set " + printable(assignment);
  const auto fail = [&](const std::string& what) { throw UsageError(shown + ": " + what); };
  const std::size_t equals = assignment.find('=');
  if (equals == assignment.npos) fail("a key and its value are expected, key=value.");
  const auto fail_in_text = [&](int, const std::string& what) { fail(what); };
  check_text(assignment, fail_in_text);
  const std::vector<std::string> keys = split(assignment.substr(0, equals));
  if (keys.size() > kDeepest) fail(std::string(kTooDeep));
  for (const std::string& key : keys) {
    if (key.empty()) fail("a key is empty; keys are joined by single dots, model.dropout=0.1.");
    if (key.size() > kLongestKey) fail(std::string(kTooLong));
  }
  const std::size_t source = sources_.size();
  OptionValue value = parse_yaml(std::string_view(assignment).substr(equals + 1), fail_in_text,
                                 source, keys.size());
  OptionValue* place = &root_;
  for (const std::string& key : keys) {
    if (place->kind == Kind::nothing) place->kind = Kind::map;
    if (place->kind != Kind::map) {
      fail("'" + printable(place->key) + "' is not a map; set it as a whole.");
    }
    auto found = std::find_if(place->items.begin(), place->items.end(),
                              [&](const OptionValue& item) { return item.key == key; });
    if (found == place->items.end()) {
      found = place->items.insert(found, OptionValue{.key = key, .source = source});
    }
    place = &*found;
  }
  value.key = place->key;
  value.source = source;  // of nothing, which the parser does not see, as well
  *place = std::move(value);
  sources_.push_back(shown);
}

std::string Options::where(const OptionValue& value) const {
  return value.source == 0 ? place_in(sources_[0], value.line) : sources_[value.source];
}

void Options::fail(const OptionValue& value, const std::string& what) const {
  const std::string message = where(value) + ": " + what;
  if (value.source != 0) throw UsageError(message);
  throw Error(message);
}

}  // namespace nunchi
