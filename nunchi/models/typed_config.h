// A FamilyConfig with a plain struct of options, and checks that such structs share.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "nunchi/models/family.h"

namespace nunchi {

// `Config` is a family's plain struct of options, for example GptConfig.
template <class Config>
class TypedConfig : public FamilyConfig {
 public:
  const Config& options() const { return options_; }

 protected:
  explicit TypedConfig(Config options) : options_(std::move(options)) {}

 private:
  Config options_;
};

inline constexpr std::int64_t kMaxVocabulary = 16 << 20;

// Returns the config after checking its options, before a model is built from it. Throws Error if
// an option is invalid or if options contradict one another.
template <class Config>
const Config& checked(const Config& config) {
  config.check([](std::initializer_list<std::string_view> keys, const std::string& what) {
    throw Error("the model's options: '" + std::string(*keys.begin()) + "' " + what + ".");
  });
  return config;
}

struct NamedSize {
  std::string_view key;
  std::int64_t size;
};
// Calls `fail` for the first size below `minimum`, with "preset" as a second key, since the size
// may come from a preset.
inline void check_sizes(const FailOption& fail, std::initializer_list<NamedSize> sizes,
                        std::int64_t minimum = 1) {
  for (const auto& [key, size] : sizes) {
    if (size >= minimum) continue;
    fail({key, "preset"},
         "must be at least " + std::to_string(minimum) + ", not " + std::to_string(size));
  }
}

}  // namespace nunchi
