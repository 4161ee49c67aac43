// The tape: what happened, so that gradients can flow back through it.
//
//   Tape tape(context);                       // records from here on
//   Variable loss = model.loss(batch);
//   tape.backward(loss);                      // parameters' gradients are added to
//
// Records are dropped as they are passed on the way back, and with them the tensors they kept.
#pragma once

#include <functional>
#include <initializer_list>
#include <vector>

#include "nunchi/autograd/variable.h"
#include "nunchi/base/error.h"

namespace nunchi {

// Where an operation puts the gradient of one of its inputs.
struct GradientTarget {
  Tensor tensor;            // shaped like the input; a view of columns where the input is one
  bool accumulate = false;  // add to what is there, or write
};

// What a recorded operation sees on the way back.
class Gradients {
 public:
  // d loss / d output; undefined when nothing depends on that output.
  const Tensor& of_output(int i = 0) const;
  bool wanted(int input) const;
  // Where to write or add d loss / d input. What nobody wants goes to memory that is thrown away.
  GradientTarget into(int input);
  // The same for kernels that always add: zero, or what is there already.
  Tensor sum(int input);
  // Hands over a finished gradient, to be kept or added to what is there. Only for wanted inputs.
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
  std::vector<const Node*> claimed_;  // whose gradients this operation writes to
};

using Backward = std::function<void(Gradients&)>;

struct TapeOptions {
  // Looks at every number that an operation makes, on both ways, and throws NotFinite at the first
  // NaN or infinity. Slow: to find out where one came from.
  bool check_finite = false;
};

// Names the operation whose output or gradient was the first that is not finite.
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

  // What record() below calls: `backward` runs when gradients of the outputs have come together.
  void add(const char* name, const std::vector<Variable>& outputs,
           std::initializer_list<Variable> inputs, Backward backward);
  // Runs the records backwards from a loss that made its gradients on the way forward (see
  // vocabulary_loss). The tape is empty after it.
  void backward(const Variable& loss);
  // The same from any operation's output, no view, with its gradient given: of
  // the same shape and type. Throws Error otherwise.
  void backward(const Variable& output, Tensor gradient);
  std::size_t size() const { return records_.size(); }

  // For tests: sees what each operation makes, its outputs on the way forward and its inputs'
  // gradients on the way back, and may change it. Operations are numbered from 1.
  enum class Way : std::uint8_t { forward, back };
  using Observer =
      std::function<void(Way way, std::size_t number, const char* operation, const Tensor& made)>;
  void set_observer(Observer observer) { observer_ = std::move(observer); }

 private:
  struct Record {
    const char* name;
    std::vector<std::shared_ptr<Variable::Node>> outputs;
    std::vector<std::shared_ptr<Variable::Node>> inputs;
    Backward backward;
  };
  // `number` is the record's on this tape, from 1.
  static void check_outputs(const Record& record, std::size_t number);
  static void check_gradients(const Record& record, std::size_t number, const char* way);
  void show_gradients(const Record& record, std::size_t number) const;

  ContextBase& context_;
  TapeOptions options_;
  Observer observer_;
  std::vector<Record> records_;
};

// Nothing is recorded on the context while this lives; its tape, if it has one, comes back after.
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

// Whether an operation on these inputs will be asked for gradients.
bool recording(std::initializer_list<Variable> inputs);

// Wraps an operation's results. If the context records and an input needs a gradient, `backward`
// runs on the way back. Undefined inputs are allowed and never wanted.
Variable record(const char* name, Tensor output, std::initializer_list<Variable> inputs,
                Backward backward);
std::vector<Variable> record(const char* name, std::vector<Tensor> outputs,
                             std::initializer_list<Variable> inputs, Backward backward);

}  // namespace nunchi
