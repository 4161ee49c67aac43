// A tensor with a place for its gradient.
#pragma once

#include <memory>
#include <utility>
#include <vector>

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
  // Undefined until something flowed back.
  const Tensor& gradient() const { return node_->gradient; }

  // A view of some columns of a matrix. Its gradient is those columns of this variable's.
  Variable columns(std::int64_t begin, std::int64_t count) const;

  // Gives a parameter its memory: `gradient` is kept from step to step and added to.
  void bind(Tensor value, Tensor gradient);
  // What the caches of a weight's other forms compare: changes whenever the value does.
  void share_version(std::shared_ptr<const std::uint64_t> version) {
    node_->version = std::move(version);
  }
  std::uint64_t version() const { return node_->version != nullptr ? *node_->version : 0; }

  // The weight as the product library wants it, kept until the version changes.
  struct PackedForm {
    Tensor tensor;
    std::uint64_t version = 0;
  };
  PackedForm& packed_form() const { return node_->packed; }

 private:
  friend class Tape;
  friend class Gradients;

  struct Node {
    Tensor value;
    Tensor gradient;
    bool needs_gradient = false;
    bool written = false;  // the gradient holds something
    bool bound = false;    // a parameter: its gradient is part of a larger buffer
    // Only views have written to the gradient, and only to these columns: from, to.
    bool by_columns = false;
    std::vector<std::pair<std::int64_t, std::int64_t>> written_columns;
    std::shared_ptr<Node> parent;  // of a view of columns
    std::int64_t first_column = 0;
    std::shared_ptr<const std::uint64_t> version;
    PackedForm packed;
  };
  std::shared_ptr<Node> node_;
};

}  // namespace nunchi
