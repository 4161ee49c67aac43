// The options of a model of any family, as a value type.
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
  // Wraps a family's plain struct of options; `make_family_config` is declared with that struct.
  template <class Config>
  requires requires(Config config) {
    {
      make_family_config(std::move(config))
      } -> std::convertible_to<std::shared_ptr<const FamilyConfig>>;
  }
  ModelConfig(Config config) : options_(make_family_config(std::move(config))) {}

  const FamilyConfig& operator*() const;
  const FamilyConfig* operator->() const { return &**this; }

  // The options as the plain struct of a family. Throws Error if this is another family.
  template <class Config>
  const Config& as() const {
    const auto* typed = dynamic_cast<const TypedConfig<Config>*>(&**this);
    if (typed == nullptr) fail_wrong_family();
    return typed->options();
  }

 private:
  [[noreturn]] void fail_wrong_family() const;

  std::shared_ptr<const FamilyConfig> options_;
};

}  // namespace nunchi
