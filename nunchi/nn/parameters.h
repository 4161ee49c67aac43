// The parameters of a model: names, shapes and initial values, in one flat buffer.
//
// Layers add() their parameters while they are built; allocate() then gives all of them memory at
// once. Weights and gradients are one buffer each and the parameters views of it, in registry order
// with matrices before vectors (weight decay applies to the matrices: a prefix). Each view starts
// at a multiple of 16 elements; the gaps are zero and stay zero.
//
// Training in bf16 keeps the weights in f32, for the optimiser and for checkpoints; layers read a
// third buffer, the weights rounded to bf16.
//
// Several threads may read the parameters concurrently, each through its own context. Tensors that
// are derived from the parameters and cached (forms of weights, position tables) use memory of the
// context that the parameters were allocated on. That context must outlive them, and it must not be
// capturing a graph while they are created.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "nunchi/autograd/variable.h"

namespace nunchi::nn {

// The initial values of a parameter.
struct Init {
  enum class Kind : std::uint8_t { zeros, ones, uniform, normal };
  Kind kind = Kind::zeros;
  double scale = 0;        // uniform on [-scale, scale), or the standard deviation
  std::int64_t first = 0;  // the number of elements that first_factor multiplies
  double first_factor = 1;

  static Init zeros() { return {}; }
  static Init ones() { return {.kind = Kind::ones}; }
  static Init normal(double deviation) { return {.kind = Kind::normal, .scale = deviation}; }
  // Glorot and Bengio's uniform distribution.
  static Init xavier(std::int64_t inputs, std::int64_t outputs);
  Init with_first_scaled(std::int64_t elements, double factor) const {
    return {kind, scale, elements, factor};
  }
};

// How a model reads a parameter.
enum class ParameterUse : std::uint8_t {
  other,
  // A matrix that is read only by products x · Wᵀ and as a table of embeddings. Such a weight may
  // exist as int8 only.
  product,
};

struct ParameterEntry {
  std::string name;
  Shape shape;
  Init init;
  ParameterUse use = ParameterUse::other;
  Variable variable;
  bool int8 = false;        // the weight exists as int8 only and has no place in the flat buffers
  std::int64_t offset = 0;  // of the first element in the flat buffers
};

class Parameters {
 public:
  Parameters() : version_(std::make_shared<std::uint64_t>(1)) {}

  // The variable has no memory before allocate(). Throws Error if the name exists already.
  Variable add(std::string name, const Shape& shape, const Init& init,
               ParameterUse use = ParameterUse::other);
  // The fixed number of an operation that draws random numbers: Dropout::operation_id.
  std::uint32_t next_operation_id() { return next_place_++; }

  struct Memory {
    std::optional<DType> dtype;  // layers compute in this type; none: the context's compute type
    bool gradients = false;      // needed for training
    // Whether a parameter is to exist as int8 only; asked for those that can (see ParameterUse) on
    // a CPU, without gradients. Empty: none.
    std::function<bool(const ParameterEntry& entry)> int8 = {};
  };
  void allocate(ContextBase& context, const Memory& memory);
  // Throws UsageError if models cannot be trained in the context's precision; allocate() does, too,
  // if gradients are asked for.
  static void check_can_train(const ContextBase& context);
  // Draws the initial weights. They depend on the seed, not on the number of threads.
  void initialize(std::uint64_t seed);

  const std::vector<ParameterEntry>& entries() const { return entries_; }
  const ParameterEntry* find(const std::string& name) const;
  std::int64_t count() const;                      // elements of all parameters, without the gaps
  DType dtype() const { return values_.dtype(); }  // the type that layers compute in
  const Tensor& weights() const { return weights_; }  // [flat size]
  const Tensor& values() const { return values_; }    // [flat size], weights() as layers read them
  // [flat size]; undefined if allocated without gradients
  const Tensor& gradients() const { return gradients_; }
  // Without memory if the weight exists as int8 only.
  Tensor weight(const ParameterEntry& entry) const {
    return entry.int8 ? entry.variable.value() : weights_.flat_slice(entry.offset, entry.shape);
  }
  // Sets rows of a weight that exists as int8 only; `first` is a multiple of 16.
  void quantize_rows(const ParameterEntry& entry, std::int64_t first, std::span<const float> rows);
  // Elements of the prefix that holds the matrices, to which weight decay applies.
  std::int64_t decayed() const { return decayed_; }

  // Must be called after weights() changed: updates values() if they are rounded, and starts a new
  // version.
  void changed();
  // Must be called instead if both weights() and values() changed.
  void values_changed() { ++*version_; }

 private:
  std::vector<ParameterEntry> entries_;
  std::unordered_map<std::string, std::size_t> indices_;  // name → index in entries_
  std::shared_ptr<std::uint64_t> version_;
  Tensor weights_, values_, gradients_;
  std::int64_t decayed_ = 0;
  std::uint32_t next_place_ = 1;
};

}  // namespace nunchi::nn
