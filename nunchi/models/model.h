// The base of every model: options, family name and parameters.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "nunchi/models/model_config.h"
#include "nunchi/nn/parameters.h"

namespace nunchi {

namespace nn {
class Position;
}

// The maximum length of a sentence for models without a limit.
inline constexpr std::int64_t kUnlimitedLength = std::int64_t{1} << 20;

class Model {
 public:
  virtual ~Model() = default;
  // Not copyable: parts of a model refer to one another.
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // The options that the model was made from.
  const ModelConfig& config() const { return config_; }
  std::string family() const;
  // The text of config.json.
  std::string config_json() const;
  // Whether the parameter belongs to one task (the labels of a classifier). A run that starts from
  // a model of another task initialises it anew.
  virtual bool belongs_to_task(const std::string& /*parameter*/) const { return false; }

  // The position encoding of the stack "encoder" or "decoder"; null: it has none.
  virtual const nn::Position* position(std::string_view /*stack*/) const { return nullptr; }

  nn::Parameters& parameters() { return parameters_; }
  const nn::Parameters& parameters() const { return parameters_; }

 protected:
  explicit Model(ModelConfig config) : config_(std::move(config)) {}

  nn::Parameters parameters_;

 private:
  ModelConfig config_;
};

// The model that config.json's text describes, without memory for its parameters yet. Throws Error,
// naming `where`, for an unknown family or bad options.
std::unique_ptr<Model> make_model(const std::string& config_json, const std::string& where);

}  // namespace nunchi
