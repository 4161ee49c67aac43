// The options of a model, whatever its family: what training and programs know of a model before it
// exists.
//
// A family is a plain struct of options, described once in its _config.cpp
// (models/described_config.h), a Model that is made from them, and one line in registry.cpp.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/base/options.h"
#include "nunchi/data/batch.h"
#include "nunchi/models/model.h"
#include "nunchi/models/model_config.h"

namespace nunchi {

// What a model can be trained for; training/objectives/ has each.
enum class ObjectiveKind : std::uint8_t {
  translation,
  causal,
  span_corruption,
  masked,
  classification
};

class FamilyConfig {
 public:
  virtual ~FamilyConfig() = default;
  virtual std::string family() const = 0;

  // The model, without memory for its parameters yet. Throws Error when the options do not fit
  // together.
  virtual std::unique_ptr<Model> make() const = 0;
  // The same options for these inputs; a family without a source takes the target's. Throws Error
  // for features if the family reads tokens only.
  virtual ModelConfig with_inputs(const ModelInputs& inputs) const = 0;
  std::unique_ptr<Model> make(const ModelInputs& inputs) const {
    return with_inputs(inputs)->make();
  }

  // The text of config.json. Options without effect are left out here and below.
  virtual std::string to_json() const = 0;
  // `model:` of a training config: the family and its options without the vocabularies.
  virtual void write_training_options(OptionWriter& out) const = 0;
  // The options that decide which function given weights compute, vocabularies included. Those of
  // training and of tasks are left out, defaults that depend on others are filled in.
  virtual OptionValue function() const = 0;

  // What the family can be trained for; the first is the default.
  virtual std::vector<ObjectiveKind> objectives() const = 0;
  ObjectiveKind objective() const { return objectives().front(); }
  // C, which the paper's learning rate depends on.
  virtual std::int64_t model_width() const = 0;
  // The most tokens that a sentence can have, <s> and </s> included.
  virtual std::int64_t longest() const = 0;
  // Why both sides need one vocabulary, as a clause after "but"; empty: there can be two.
  virtual std::string one_vocabulary() const = 0;
  // What kernels have to support, 0: no such limit. See check_device.
  struct Needs {
    std::int64_t head_width = 0;        // columns of an attention head
    std::int64_t relative_buckets = 0;  // of relative positions
  };
  virtual Needs needs() const = 0;

  struct DropoutOption {
    std::string name;  // as in `model:` of a training config
    double rate = 0;
  };
  virtual std::vector<DropoutOption> dropouts() const = 0;
  // The same model with this rate in all of them. Throws Error unless 0 <= rate < 1.
  virtual ModelConfig with_dropout(double rate) const = 0;

 protected:
  FamilyConfig() = default;
  FamilyConfig(const FamilyConfig&) = default;
  FamilyConfig& operator=(const FamilyConfig&) = default;
};

// The options of a family whose models can learn to classify; such a FamilyConfig is one too.
class ClassifierConfig {
 public:
  virtual ~ClassifierConfig() = default;
  // The classes that the options name, in the order of their scores; empty: none yet.
  virtual const std::vector<std::string>& labels() const = 0;
  // The same options for a model that tells these classes apart. If the options name classes, they
  // keep their order and have to include these: throws Error otherwise.
  virtual ModelConfig with_labels(const std::vector<std::string>& labels) const = 0;
};
// Null: the family cannot classify.
const ClassifierConfig* as_classifier_config(const ModelConfig& config);

// An option in which two models are different functions of the same weights.
struct OptionDifference {
  std::string key, first, second;  // the values as they would be written
};
std::optional<OptionDifference> function_difference(const ModelConfig& first,
                                                    const ModelConfig& second);

// A line of the registry: how the options of a family are read. The registry has read `family`.
struct Family {
  std::string name;
  std::vector<std::string> presets;  // shapes known by name: "base", "gpt2"
  std::function<ModelConfig(const std::string& preset)> preset;
  std::function<ModelConfig(OptionReader& config_json)> read;
  std::function<ModelConfig(OptionReader& model)> read_training_options;
};

// Of the registry (models/registry.cpp).

// The text of config.json. Throws Error, naming `where`, for an unknown family or bad options.
ModelConfig read_model_config(const std::string& config_json, const std::string& where);
// `model:` of a training config: the family and its options. Throws Error for an unknown family or
// bad options.
ModelConfig read_model_options(OptionReader& in);
// A preset of any family. Throws UsageError for an unknown name.
ModelConfig model_preset(const std::string& name);

}  // namespace nunchi
