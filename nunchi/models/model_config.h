// The options of some family as a value.
#pragma once

#include <concepts>
#include <memory>
#include <utility>

namespace nunchi {

class FamilyConfig;

// A FamilyConfig whose options are a Config, a plain struct.
template <class Config>
class TypedConfig;

// Copies share the options, which never change.
class ModelConfig {
 public:
  ModelConfig() = default;  // without a family: using it throws Error
  explicit ModelConfig(std::shared_ptr<const FamilyConfig> options)
      : options_(std::move(options)) {}
  // Of a family's plain struct; `describe` is declared beside it.
  template <class Config>
  requires requires(Config config) {
    { describe(std::move(config)) } -> std::convertible_to<std::shared_ptr<const FamilyConfig>>;
  }
  ModelConfig(Config config) : options_(describe(std::move(config))) {}

  const FamilyConfig& operator*() const;
  const FamilyConfig* operator->() const { return &**this; }

  // The options as the struct of a family that the caller knows. Throws Error for another family.
  template <class Config>
  const Config& as() const {
    const auto* typed = dynamic_cast<const TypedConfig<Config>*>(&**this);
    if (typed == nullptr) fail_as();
    return typed->options();
  }

 private:
  [[noreturn]] void fail_as() const;

  std::shared_ptr<const FamilyConfig> options_;
};

}  // namespace nunchi
