#include "nunchi/base/json_options.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "nunchi/base/printable.h"

namespace nunchi::option_text {
namespace {

using Kind = OptionValue::Kind;

// Counts the bytes that are read: nlohmann's parser does not report its line.
struct CountingIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* position;
  std::size_t* read;

  reference operator*() const { return *position; }
  CountingIterator& operator++() {
    ++position;
    ++*read;
    return *this;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.position == b.position;
  }
};

// nlohmann's events; every function returns whether to continue.
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
  // The line of the last token. After a number the parser has read one byte more, which may be the
  // end of the line.
  int line() {
    const std::size_t end = read_ == 0 ? 0 : read_ - 1;
    for (; counted_ < end; ++counted_) line_ += text_[counted_] == '\n' ? 1 : 0;
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
  std::size_t counted_ = 0;  // bytes whose line ends line_ includes
  int line_ = 1;
};

}  // namespace

OptionValue parse_json(std::string_view text, const Fail& fail) {
  check_text(text, fail);
  TreeBuilder tree(fail, {});
  JsonEvents events(text, tree, fail);
  nlohmann::json::sax_parse(CountingIterator{text.data(), events.read()},
                            CountingIterator{text.data() + text.size(), events.read()}, &events);
  return std::move(tree).take();
}

std::string quoted(const std::string& text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace nunchi::option_text

namespace nunchi {
namespace {

using Kind = OptionValue::Kind;
using option_text::quoted;

void append_json(const OptionValue& value, std::size_t indent, std::string& out) {
  const auto append_items = [&](char open, char close) {
    out += open;
    const char* separator = "\n";
    for (const OptionValue& item : value.items) {
      out += std::exchange(separator, ",\n") + std::string(indent + 2, ' ');
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

std::string to_json(const OptionValue& map) {
  std::string out;
  append_json(map, 0, out);
  return out + "\n";
}

}  // namespace nunchi
