// Whether a model is trained or evaluated. Dropout, label smoothing and random changes to the
// training text act in training mode only, whether or not a tape records.
//
//   const ModeScope scope(context, Mode::training);
//   Tape tape(context);
//   tape.backward(model.loss(batch).total);
#pragma once

#include <cstdint>

namespace nunchi {

class ContextBase;

enum class Mode : std::uint8_t { evaluating, training };

// Sets the context's mode and restores the previous one at the end of the scope.
class ModeScope {
 public:
  ModeScope(ContextBase& context, Mode mode);
  ~ModeScope();
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;

 private:
  ContextBase& context_;
  Mode previous_;
};

}  // namespace nunchi
