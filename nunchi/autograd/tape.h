// The tape: the operations of a forward pass, recorded for the backward pass.
//
//   Tape tape(context);                       // records from here on
//   Variable loss = model.loss(batch);
//   tape.backward(loss);                      // adds to the gradients of parameters
//
// The backward pass drops each record after it has run, and with it the tensors that it saved.
#pragma once

#include <functional>
#include <initializer_list>
#include <vector>

#include "nunchi/autograd/variable.h"
#include "nunchi/base/error.h"

namespace nunchi {

// Where an operation writes the gradient of one of its inputs.
struct GradientTarget {
  Tensor tensor;            // shaped like the input; a view of columns if the input is one
  bool accumulate = false;  // true: add to the tensor; false: overwrite it
};

// The gradients of one recorded operation's outputs and inputs, in the backward pass.
class Gradients {
 public:
  // d loss / d output; undefined if the loss does not depend on that output.
  const Tensor& output(int i = 0) const;
  // Whether the input needs a gradient.
  bool wanted(int input) const;
  // Where to write or add d loss / d input; scratch memory if the gradient is not wanted.
  GradientTarget target(int input);
  // The same for kernels that always add: the tensor holds the gradient so far, or zeros.
  Tensor sum(int input);
  // Adds a computed gradient to the input's, or makes it the input's if it is the first. Does
  // nothing if the gradient is not wanted.
  void give(int input, Tensor gradient);

 private:
  friend class Tape;
  using Node = Variable::Node;
  static bool claim_columns(Node& node, std::int64_t begin, std::int64_t end);
  static void complete(Node& node);
  Gradients(std::vector<std::shared_ptr<Node>>& outputs, std::vector<std::shared_ptr<Node>>& inputs)
      : outputs_(outputs), inputs_(inputs) {}
  std::vector<std::shared_ptr<Node>>& outputs_;
  std::vector<std::shared_ptr<Node>>& inputs_;
  std::vector<const Node*> claimed_;  // nodes whose gradients this operation writes
};

using Backward = std::function<void(Gradients&)>;

struct TapeOptions {
  // Checks every number that an operation computes, in both passes, and throws NotFinite at the
  // first NaN or infinity. Slow: meant to find the operation that causes one.
  bool check_finite = false;
};

// Names the operation with the first output or gradient that is not finite.
class NotFinite : public Error {
 public:
  using Error::Error;
};

class Tape {
 public:
  // Becomes the context's tape until it is destroyed; tapes do not nest.
  explicit Tape(ContextBase& context, const TapeOptions& options = {});
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // Called by record() below: `backward` runs when the gradients of the outputs are complete.
  void add(const char* name, const std::vector<Variable>& outputs,
           std::initializer_list<Variable> inputs, Backward backward);
  // The backward pass from a loss that computed its gradients in the forward pass (see
  // vocabulary_loss). The tape is empty afterwards.
  void backward(const Variable& loss);
  // The backward pass from the output of any operation. Throws Error if the gradient differs from
  // the output in shape or type, or if the output is a view.
  void backward(const Variable& output, Tensor gradient);
  std::size_t size() const { return records_.size(); }

  // For tests: called with each operation's outputs in the forward pass and its inputs' gradients
  // in the backward pass; may change them. Operations are numbered from 1.
  enum class Pass : std::uint8_t { forward, backward };
  using Observer = std::function<void(Pass pass, std::size_t number, const char* operation,
                                      const Tensor& result)>;
  void set_observer(Observer observer) { observer_ = std::move(observer); }

 private:
  struct Record {
    const char* name;
    std::vector<std::shared_ptr<Variable::Node>> outputs;
    std::vector<std::shared_ptr<Variable::Node>> inputs;
    Backward backward;
  };
  // `number` counts the tape's records from 1.
  static void check_outputs(const Record& record, std::size_t number);
  static void check_gradients(const Record& record, std::size_t number, Pass pass);
  void observe_gradients(const Record& record, std::size_t number) const;

  ContextBase& context_;
  TapeOptions options_;
  Observer observer_;
  std::vector<Record> records_;
};

// Pauses recording on a context. The destructor restores the context's tape, if it had one.
class TapePause {
 public:
  explicit TapePause(ContextBase& context) : context_(context), tape_(context.tape()) {
    context.set_tape(nullptr);
  }
  ~TapePause() { context_.set_tape(tape_); }
  TapePause(const TapePause&) = delete;
  TapePause& operator=(const TapePause&) = delete;

 private:
  ContextBase& context_;
  Tape* tape_;
};

// Whether an operation on these inputs will be recorded. The context of the first defined input
// decides, so activations come before weights.
bool recording(std::initializer_list<Variable> inputs);

// Wraps an operation's results. If the outputs' context records and an input needs a gradient,
// `backward` runs in the backward pass. Undefined inputs are allowed; their gradients are not
// wanted.
Variable record(const char* name, Tensor output, std::initializer_list<Variable> inputs,
                Backward backward);
std::vector<Variable> record(const char* name, std::vector<Tensor> outputs,
                             std::initializer_list<Variable> inputs, Backward backward);

}  // namespace nunchi
