// A strict reader of small XML documents, to test that drawings are well-formed.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "nunchi/text/unicode.h"

namespace nunchi {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  // of the element itself, entities replaced
  std::vector<XmlElement> children;

  // All elements with this name, this one included, in document order.
  std::vector<const XmlElement*> all(std::string_view wanted) const {
    std::vector<const XmlElement*> found;
    if (name == wanted) found.push_back(this);
    for (const XmlElement& child : children) {
      for (const XmlElement* inner : child.all(wanted)) found.push_back(inner);
    }
    return found;
  }
};

class XmlReader {
 public:
  // The root element. Throws std::runtime_error, with the place, for a document that is not
  // well-formed; comments, CDATA and document types are refused too.
  static XmlElement read(std::string_view document) {
    check_characters(document);
    XmlReader reader(document);
    reader.take("<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
    reader.spaces();
    XmlElement root = reader.element();
    reader.spaces();
    if (!reader.rest_.empty()) reader.fail("text after the root element");
    return root;
  }

 private:
  explicit XmlReader(std::string_view document) : rest_(document), size_(document.size()) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error("not well-formed at byte " + std::to_string(size_ - rest_.size()) +
                             ": " + what + " before '" + std::string(rest_.substr(0, 40)) + "'");
  }

  static void check_characters(std::string_view document) {
    if (!is_valid_utf8(document)) throw std::runtime_error("not valid UTF-8");
    while (!document.empty()) {
      const char32_t c = take_character(document);
      const bool allowed = c == 0x9 || c == 0xA || c == 0xD || (c >= 0x20 && c <= 0xD7FF) ||
                           (c >= 0xE000 && c <= 0xFFFD) || (c >= 0x10000 && c <= 0x10FFFF);
      if (!allowed) throw std::runtime_error("XML forbids character " + std::to_string(c));
    }
  }

  void take(std::string_view expected) {
    if (!rest_.starts_with(expected)) fail("no '" + std::string(expected) + "'");
    rest_.remove_prefix(expected.size());
  }

  bool spaces() {
    const std::size_t count = std::min(rest_.find_first_not_of(" \n\t\r"), rest_.size());
    rest_.remove_prefix(count);
    return count > 0;
  }

  std::string name() {
    const auto is_name = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == ':' || c == '-' || c == '_';
    };
    std::size_t length = 0;
    while (length < rest_.size() && is_name(rest_[length])) ++length;
    if (length == 0 || rest_[0] == '-' || (rest_[0] >= '0' && rest_[0] <= '9')) fail("no name");
    std::string found(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return found;
  }

  // Text up to `end`, which stays; `<` is refused.
  std::string content(char end) {
    static const std::map<std::string, char> entities{
        {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
    std::string text;
    while (!rest_.empty() && rest_[0] != end) {
      if (rest_[0] == '<') fail("an unescaped '<'");
      if (rest_[0] != '&') {
        text += rest_[0];
        rest_.remove_prefix(1);
        continue;
      }
      const std::string entity(rest_.substr(0, rest_.substr(0, 8).find(';') + 1));
      if (!entities.contains(entity)) fail("an unknown entity");
      text += entities.at(entity);
      rest_.remove_prefix(entity.size());
    }
    return text;
  }

  XmlElement element() {
    take("<");
    XmlElement element;
    element.name = name();
    while (spaces() && rest_[0] != '/' && rest_[0] != '>') {
      const std::string attribute = name();
      take("=\"");
      if (!element.attributes.emplace(attribute, content('"')).second) {
        fail("a second attribute " + attribute);
      }
      take("\"");
    }
    if (rest_.starts_with("/>")) {
      take("/>");
      return element;
    }
    take(">");
    while (true) {
      element.text += content('<');
      if (rest_.starts_with("</")) break;
      element.children.push_back(this->element());
    }
    take("</" + element.name + ">");
    return element;
  }

  std::string_view rest_;
  std::size_t size_;
};

}  // namespace nunchi
