#include "nunchi/autograd/variable.h"

namespace nunchi {

Variable::Variable(Tensor value, bool needs_gradient) : node_(std::make_shared<Node>()) {
  node_->value = std::move(value);
  node_->needs_gradient = needs_gradient;
}

Variable Variable::columns(std::int64_t begin, std::int64_t count) const {
  Variable view(node_->value.columns(begin, count), node_->needs_gradient);
  // A view of a view is a view of the original variable.
  const bool nested = node_->parent != nullptr;
  view.node_->parent = nested ? node_->parent : node_;
  view.node_->first_column = begin + (nested ? node_->first_column : 0);
  return view;
}

void Variable::bind(Tensor value, Tensor gradient) {
  node_->value = std::move(value);
  node_->gradient = std::move(gradient);
  node_->needs_gradient = node_->gradient.defined();
  node_->written = node_->bound = node_->needs_gradient;
}

}  // namespace nunchi
