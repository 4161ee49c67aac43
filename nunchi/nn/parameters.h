// The parameters of a model: names, shapes and how they start, in one flat buffer.
//
// Layers add() what they need while they are built; allocate() then gives all of them memory at
// once. Weights and gradients are one buffer each, the parameters views of it, in registry order
// with matrices before vectors (weight decay applies to the matrices: a prefix). Each view starts
// at a multiple of 16 elements; the gaps are zero and stay zero.
//
// Training in bf16 keeps the weights in f32, which is what the optimiser changes and checkpoints
// hold; layers then read their rounded form, a third buffer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "nunchi/autograd/variable.h"

namespace nunchi::nn {

// How a parameter starts.
struct Init {
  enum class Kind : std::uint8_t { zeros, ones, uniform, normal };
  Kind kind = Kind::zeros;
  double scale = 0;         // uniform on [-scale, scale), or the standard deviation
  std::int64_t first = 0;   // so many elements are
  double first_factor = 1;  // multiplied by this

  static Init zeros() { return {}; }
  static Init ones() { return {.kind = Kind::ones}; }
  static Init normal(double deviation) { return {.kind = Kind::normal, .scale = deviation}; }
  // Glorot and Bengio's uniform distribution.
  static Init xavier(std::int64_t inputs, std::int64_t outputs);
  Init with_first(std::int64_t elements, double factor) const {
    return {kind, scale, elements, factor};
  }
};

struct ParameterEntry {
  std::string name;
  Shape shape;
  Init init;
  Variable variable;
  std::int64_t offset = 0;  // in the flat buffers, elements
};

class Parameters {
 public:
  Parameters() : version_(std::make_shared<std::uint64_t>(1)) {}

  // The variable has no memory before allocate(). Throws Error for a name that exists.
  Variable add(std::string name, const Shape& shape, const Init& init);
  // Says anew how each parameter starts, for families that are used to something else.
  void set_inits(const std::function<Init(const ParameterEntry&)>& init_of);
  // A fixed number for an operation that draws random numbers.
  std::uint32_t next_place() { return next_place_++; }

  struct Memory {
    std::optional<DType> dtype;  // what layers compute in; none: what the context does
    bool gradients = false;      // training needs them
  };
  void allocate(ContextBase& context, const Memory& memory);
  // Draws the initial weights; the same seed gives the same, whatever the threads.
  void initialize(std::uint64_t seed);

  const std::vector<ParameterEntry>& entries() const { return entries_; }
  const ParameterEntry* find(const std::string& name) const;
  std::int64_t count() const;                             // of numbers, without gaps
  DType dtype() const { return values_.dtype(); }         // what layers compute in
  const Tensor& weights() const { return weights_; }      // [flat size]
  const Tensor& values() const { return values_; }        // the same as layers read them
  const Tensor& gradients() const { return gradients_; }  // [flat size]; undefined without
  Tensor weight(const ParameterEntry& entry) const {
    return weights_.part(entry.offset, entry.shape);
  }
  std::int64_t decayed() const { return decayed_; }  // the matrices' part of the flat size
  bool allocated() const { return weights_.defined(); }

  // To be called by whoever changes the weights: rounds them anew where layers read another form.
  void changed();
  // The same for those who changed that form too.
  void values_changed() { ++*version_; }

 private:
  std::vector<ParameterEntry> entries_;
  std::unordered_map<std::string, std::size_t> places_;  // of the entries, by name
  std::shared_ptr<std::uint64_t> version_;
  Tensor weights_, values_, gradients_;
  std::int64_t decayed_ = 0;
  std::uint32_t next_place_ = 1;
};

}  // namespace nunchi::nn
