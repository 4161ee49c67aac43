#include "nunchi/device/mode.h"

#include "nunchi/device/context.h"

namespace nunchi {

ModeScope::ModeScope(ContextBase& context, Mode mode)
    : context_(context), previous_(context.mode()) {
  context.set_mode(mode);
}

ModeScope::~ModeScope() { context_.set_mode(previous_); }

}  // namespace nunchi
