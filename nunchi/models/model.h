// What every family of models has: a name, parameters and options that can be written down.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "nunchi/nn/parameters.h"

namespace nunchi {

// Tokens that a sentence can have where nothing limits them: more than anybody asks for.
inline constexpr std::int64_t kUnlimitedLength = std::int64_t{1} << 20;

class FamilyConfig;

class Model {
 public:
  Model() = default;
  virtual ~Model() = default;
  // Parts of a model refer to one another.
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual std::string family() const = 0;
  // The effective options, and the same as config.json's text.
  virtual const FamilyConfig& config() const = 0;
  virtual std::string config_json() const = 0;
  // Whether the parameter belongs to a task of its own (the labels of a classifier): a run that
  // starts from a model of another task begins with a fresh one.
  virtual bool belongs_to_task(const std::string& /*parameter*/) const { return false; }

  nn::Parameters& parameters() { return parameters_; }
  const nn::Parameters& parameters() const { return parameters_; }

 protected:
  nn::Parameters parameters_;
};

// The model that config.json's text describes, without memory for its parameters yet. Throws Error,
// naming `where`, for an unknown family or bad options.
std::unique_ptr<Model> make_model(const std::string& config_json, const std::string& where);

}  // namespace nunchi
