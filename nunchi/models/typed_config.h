// A FamilyConfig whose options are a plain struct, and checks that such structs share.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "nunchi/models/family.h"

namespace nunchi {

template <class Config>
class TypedConfig : public FamilyConfig {
 public:
  const Config& options() const { return options_; }

 protected:
  explicit TypedConfig(Config options) : options_(std::move(options)) {}

 private:
  Config options_;
};

inline constexpr std::int64_t kLargestVocabulary = 16 << 20;

// The options themselves, before a model is built on them. Throws Error when they do not fit
// together.
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
// Calls `fail` for the first size below `least`.
inline void check_sizes(const FailOption& fail, std::initializer_list<NamedSize> sizes,
                        std::int64_t least = 1) {
  for (const auto& [key, size] : sizes) {
    if (size >= least) continue;
    fail({key, "preset"},
         "must be at least " + std::to_string(least) + ", not " + std::to_string(size));
  }
}

}  // namespace nunchi
