// The options of a model of any family, known to training and programs before the model is built.
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

// The training objectives, implemented in training/objectives/.
enum class ObjectiveKind : std::uint8_t {
  translation,
  causal,
  span_corruption,
  masked,
  classification
};

// The options of one family's model; immutable, shared by ModelConfig.
class FamilyConfig {
 public:
  virtual ~FamilyConfig() = default;
  virtual std::string family() const = 0;

  // The model, without memory for its parameters yet. Throws Error if options contradict one
  // another.
  virtual std::unique_ptr<Model> make() const = 0;
  // The same options for these sizes. A family without a source uses the target vocabulary only.
  // Throws Error for features if the family reads tokens only.
  virtual ModelConfig with_input_sizes(const InputSizes& sizes) const = 0;
  std::unique_ptr<Model> make(const InputSizes& sizes) const {
    return with_input_sizes(sizes)->make();
  }

  // The text of config.json. This function and the next two leave out options without effect.
  virtual std::string to_json() const = 0;
  // `model:` of a training config: the family and its options without the vocabularies.
  virtual void write_training_options(OptionWriter& out) const = 0;
  // The options that decide what a model with given weights computes, vocabularies included.
  // Options of training and of single tasks are reset; defaults that depend on other options are
  // filled in.
  virtual OptionValue function_options() const = 0;

  // The objectives that the family can be trained with; the first is the default.
  virtual std::vector<ObjectiveKind> objectives() const = 0;
  ObjectiveKind objective() const { return objectives().front(); }
  // C, which the paper's learning rate depends on.
  virtual std::int64_t model_width() const = 0;
  // The maximum number of tokens of a sentence, <s> and </s> included.
  virtual std::int64_t max_length() const = 0;
  // Why source and target must share one vocabulary, as a clause after "but"; empty if they need
  // not.
  virtual std::string shared_vocabulary_reason() const = 0;
  // Sizes that the device's kernels must support; 0: not needed. See check_device.
  struct KernelRequirements {
    std::int64_t head_width = 0;        // columns of an attention head
    std::int64_t relative_buckets = 0;  // entries per head of the table of relative positions
  };
  virtual KernelRequirements kernel_requirements() const = 0;

  struct DropoutOption {
    std::string name;  // as in `model:` of a training config
    double rate = 0;
  };
  virtual std::vector<DropoutOption> dropouts() const = 0;
  // The same options with all dropouts set to this rate. Throws Error unless 0 <= rate < 1.
  virtual ModelConfig with_dropout(double rate) const = 0;

 protected:
  FamilyConfig() = default;
  FamilyConfig(const FamilyConfig&) = default;
  FamilyConfig& operator=(const FamilyConfig&) = default;
};

// Implemented by the FamilyConfig of a family whose models can learn to classify.
class ClassifierConfig {
 public:
  virtual ~ClassifierConfig() = default;
  // The names of the classes, in the order of their scores; empty: no classes yet.
  virtual const std::vector<std::string>& labels() const = 0;
  // The same options for a model that distinguishes these classes. If the options already have
  // classes, those stay as they are; throws Error if one of `labels` is not among them.
  virtual ModelConfig with_labels(const std::vector<std::string>& labels) const = 0;
};
// Null if the family cannot classify.
const ClassifierConfig* as_classifier_config(const ModelConfig& config);

// An option that makes two models compute different functions from the same weights.
struct OptionDifference {
  std::string key, first, second;  // `first` and `second` are the values as config.json has them
};
std::optional<OptionDifference> function_difference(const ModelConfig& first,
                                                    const ModelConfig& second);

// An entry of the registry: functions that read the options of one family, without the key
// `family`, which the registry reads.
struct Family {
  std::string name;
  std::vector<std::string> presets;  // names of predefined sizes: "base", "gpt2"
  std::function<ModelConfig(const std::string& preset)> preset;
  std::function<ModelConfig(OptionReader& config_json)> read;
  std::function<ModelConfig(OptionReader& model)> read_training_options;
};

// The registry (models/registry.cpp) implements the functions below.

// Reads the text of config.json. Throws Error, naming `where`, for an unknown family or bad
// options.
ModelConfig read_model_config(const std::string& config_json, const std::string& where);
// Reads `model:` of a training config: the family and its options. Throws Error for an unknown
// family or bad options.
ModelConfig read_training_model_config(OptionReader& in);
// A preset of any family. Throws UsageError for an unknown name.
ModelConfig model_preset(const std::string& name);

}  // namespace nunchi
