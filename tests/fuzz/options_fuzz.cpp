// Any bytes: the parsers of options throw an Error of one line, or return a tree that
// is the same after writing and reading it.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nunchi/base/error.h"
#include "nunchi/base/json_options.h"
#include "nunchi/base/options.h"
#include "nunchi/base/printable.h"
#include "nunchi/base/yaml_options.h"

namespace {

using nunchi::Options;
using nunchi::OptionValue;

void check(bool holds) {
  if (!holds) __builtin_trap();
}

// Kinds of scalars may differ: a text that needs no quotes is written without them.
bool same(const OptionValue& a, const OptionValue& b) {
  const auto is_scalar = [](const OptionValue& value) {
    return value.kind != OptionValue::Kind::nothing && value.kind != OptionValue::Kind::list &&
           value.kind != OptionValue::Kind::map;
  };
  if (a.kind != b.kind && !(is_scalar(a) && is_scalar(b))) return false;
  if (a.key != b.key || a.text != b.text || a.items.size() != b.items.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    if (!same(a.items[i], b.items[i])) return false;
  }
  return true;
}

// Reads every key as every type. The program reads only printable keys, so others are skipped.
void read_fields(const Options& options) {
  for (const OptionValue& item : options.root().items) {
    if (nunchi::printable(item.key) != item.key) continue;
    const auto attempt = [&](const auto& read_option) {
      nunchi::OptionReader in(options);
      try {
        read_option(in);
        in.finish();
      } catch (const nunchi::Error& error) {
        check(std::string_view(error.what()).find('\n') == std::string_view::npos);
      }
    };
    int whole = 0;
    float number = 0;
    bool flag = false;
    std::string text;
    std::vector<std::string> texts;
    attempt([&](auto& in) { in.integer(item.key, whole, -5, 5); });
    attempt([&](auto& in) { in.fraction(item.key, number); });
    attempt([&](auto& in) { in.flag(item.key, flag); });
    attempt([&](auto& in) { in.text(item.key, text); });
    attempt([&](auto& in) { in.texts(item.key, texts); });
    attempt([&](auto& in) { in.map(item.key, [](auto&) {}); });
    check(whole >= -5 && whole <= 5 && number >= 0 && number < 1);
  }
}

template <class F>
std::optional<Options> options_of(const F& parse) {
  try {
    return parse();
  } catch (const nunchi::Error& error) {
    check(std::string_view(error.what()).find('\n') == std::string_view::npos);
    return std::nullopt;
  }
}

template <class F>
void read(const F& parse) {
  const std::optional<Options> options = options_of(parse);
  if (!options) return;
  read_fields(*options);
  check(same(Options::from_yaml(to_yaml(options->root()), "yaml").root(), options->root()));
  check(same(Options::from_json(to_json(options->root()), "json").root(), options->root()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  read([&] { return Options::from_yaml(text, "fuzz.yaml"); });
  read([&] { return Options::from_json(text, "fuzz.json"); });
  read([&] {
    Options options = Options::from_yaml("model: {dropout: 0.1}", "fuzz.yaml");
    options.set(text);
    return options;
  });
  return 0;
}
