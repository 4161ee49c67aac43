// The options of a model, whatever its family: all that training knows of a model before it exists.
//
// A family is a config that derives from FamilyConfig (StackConfig if it is made of Transformer
// layers) through FamilyOptions, which reads and writes it (models/family_options.h), a Model that
// is made from it, and one line in registry.cpp.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/base/options.h"
#include "nunchi/data/batch.h"
#include "nunchi/models/model.h"

namespace nunchi {

// What a model can be trained for; training/objectives/ has each.
enum class ObjectiveKind : std::uint8_t {
  translation,
  causal,
  span_corruption,
  masked,
  classification
};

class ModelConfig;

class FamilyConfig {
 public:
  virtual ~FamilyConfig() = default;
  virtual std::string family() const = 0;
  // A model with these inputs, without memory for its parameters yet; a family without a source has
  // the target's. Throws Error when the options do not fit together, or when the family does not
  // read features.
  virtual std::unique_ptr<Model> make(const ModelInputs& inputs) const = 0;
  // The family and its options but the vocabularies and what has no effect, as `model:` of a
  // training config has them.
  virtual void write_training_options(OptionWriter& out) const = 0;
  // What the family can be trained for; the first is what it is trained for unless a config says
  // otherwise.
  virtual std::vector<ObjectiveKind> objectives() const = 0;
  ObjectiveKind objective() const { return objectives().front(); }
  // C, which the paper's learning rate depends on.
  virtual std::int64_t model_width() const = 0;
  // Tokens that a sentence can have, <s> and </s> included.
  virtual std::int64_t longest() const { return kUnlimitedLength; }
  // Why one vocabulary has to serve both sides: the end of a sentence that begins with "…, but".
  // Empty: there can be two.
  virtual std::string one_vocabulary() const { return {}; }
  // What kernels have to be able to do for it, 0: nothing of the kind. See check_device.
  struct Needs {
    std::int64_t head_width = 0;        // columns of an attention head
    std::int64_t relative_buckets = 0;  // of relative positions
  };
  virtual Needs needs() const { return {}; }
  // The classes that the options name; empty: none.
  virtual std::vector<std::string> named_labels() const { return {}; }
  // The same options for a model that tells these classes apart; those that the options name
  // themselves go before, and have to hold these. Throws Error for a family that cannot.
  virtual ModelConfig with_labels(const std::vector<std::string>& labels) const;

  // The options that decide which function some given weights are, vocabularies included: without
  // those of training and of tasks, the others as they take effect.
  virtual OptionValue function() const = 0;

  // What some options decide about others that a training config does not mention. Not virtual: the
  // family's reader knows which one it calls.
  void take_defaults(const OptionReader&) {}
  // Why an option has no effect beside the others, as the end of a sentence; empty: it has one. Not
  // virtual either.
  std::string unused(std::string_view /*key*/) const { return {}; }

 protected:
  FamilyConfig() = default;
  FamilyConfig(const FamilyConfig&) = default;
  FamilyConfig(FamilyConfig&&) = default;
  FamilyConfig& operator=(const FamilyConfig&) = default;
  FamilyConfig& operator=(FamilyConfig&&) = default;
};

// The options of some family as a value. Copies share them, which is no matter: they never change.
class ModelConfig {
 public:
  ModelConfig() = default;  // of no family; asking it for one throws Error
  template <std::derived_from<FamilyConfig> Config>
  ModelConfig(Config config) : options_(std::make_shared<const Config>(std::move(config))) {}

  const FamilyConfig& operator*() const {
    if (options_ == nullptr) throw Error("the model's family is not known.");
    return *options_;
  }
  const FamilyConfig* operator->() const { return &**this; }

  // The options of a family that is known to the caller. Throws Error when it is another.
  template <std::derived_from<FamilyConfig> Config>
  const Config& as() const {
    const auto* found = dynamic_cast<const Config*>(&**this);
    if (found == nullptr) throw Error("the options are those of the family " + (*this)->family());
    return *found;
  }

 private:
  std::shared_ptr<const FamilyConfig> options_;
};

// An option in which two models are different functions of the same weights.
struct OptionDifference {
  std::string key, first, second;  // the values as they would be written
};
std::optional<OptionDifference> function_difference(const FamilyConfig& first,
                                                    const FamilyConfig& second);

// The registry's (models/registry.cpp).

// `model:` of a training config: the family and its options. Throws Error for an unknown family or
// bad options.
ModelConfig read_model_options(OptionReader& in);
// A shape that people know by name, of whichever family has it: "base", "gpt2". Throws UsageError
// for another.
ModelConfig model_preset(const std::string& name);

}  // namespace nunchi
