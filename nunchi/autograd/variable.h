// A tensor that can have a gradient.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "nunchi/autograd/weight_forms.h"
#include "nunchi/tensor/tensor.h"

namespace nunchi {

// A handle: copies refer to the same variable.
class Variable {
 public:
  Variable() = default;
  explicit Variable(Tensor value) : Variable(std::move(value), false) {}
  Variable(Tensor value, bool needs_gradient);

  bool defined() const { return node_ != nullptr; }
  const Tensor& value() const { return node_->value; }
  bool needs_gradient() const { return node_ != nullptr && node_->needs_gradient; }
  // Undefined before the backward pass has reached this variable.
  const Tensor& gradient() const { return node_->gradient; }

  // A view of some columns of a matrix. Its gradient is the same columns of this variable's
  // gradient.
  Variable columns(std::int64_t begin, std::int64_t count) const;

  // Gives a parameter its memory: `gradient` accumulates from step to step.
  void bind(Tensor value, Tensor gradient);
  // Makes this a weight, whose other forms are cached. `version` must change whenever the value
  // does.
  void share_version(std::shared_ptr<const std::uint64_t> version) {
    node_->forms = std::make_unique<WeightForms>(std::move(version));
  }
  // The cache of a weight's forms; null if this is not a weight.
  WeightForms* forms() const { return node_->forms.get(); }

 private:
  friend class Tape;
  friend class Gradients;

  struct Node {
    Tensor value;
    Tensor gradient;
    bool needs_gradient = false;
    bool written = false;  // the gradient has been written
    bool bound = false;    // a parameter: its gradient is part of a larger buffer
    // Only views have written the gradient so far, and only these columns (begin, end).
    bool by_columns = false;
    std::vector<std::pair<std::int64_t, std::int64_t>> written_columns;
    std::shared_ptr<Node> parent;   // a view of columns: the variable it is a view of
    std::int64_t first_column = 0;  // of the view in its parent
    std::unique_ptr<WeightForms> forms;
  };
  std::shared_ptr<Node> node_;
};

}  // namespace nunchi
