// A tensor that can have a gradient.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "nunchi/autograd/weight_forms.h"
#include "nunchi/tensor/tensor.h"

namespace nunchi {

// A handle: copies are the same variable.
class Variable {
 public:
  Variable() = default;
  explicit Variable(Tensor value) : Variable(std::move(value), false) {}
  Variable(Tensor value, bool needs_gradient);

  bool defined() const { return node_ != nullptr; }
  const Tensor& value() const { return node_->value; }
  bool needs_gradient() const { return node_ != nullptr && node_->needs_gradient; }
  // Undefined before the backward pass reaches it.
  const Tensor& gradient() const { return node_->gradient; }

  // A view of some columns of a matrix. Its gradient is those columns of this variable's.
  Variable columns(std::int64_t begin, std::int64_t count) const;

  // Gives a parameter its memory: `gradient` is kept from step to step and added to.
  void bind(Tensor value, Tensor gradient);
  // Makes this a weight whose other forms are kept. `version` changes whenever the value does.
  void share_version(std::shared_ptr<const std::uint64_t> version) {
    node_->forms = std::make_unique<WeightForms>(std::move(version));
  }
  // Null: not a weight, its forms are not kept.
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
    std::shared_ptr<Node> parent;  // of a view of columns
    std::int64_t first_column = 0;
    std::unique_ptr<WeightForms> forms;
  };
  std::shared_ptr<Node> node_;
};

}  // namespace nunchi
