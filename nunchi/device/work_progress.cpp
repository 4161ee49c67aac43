#include "nunchi/device/work_progress.h"

#include "nunchi/device/context.h"

namespace nunchi {

// Not inline: kernels that are compiled for one instruction set call these functions.

WorkProgress* WorkProgress::for_rows(ContextBase& context, std::int64_t rows) {
  return rows < kManyRows ? nullptr : &context.cache<WorkProgress>();
}

void WorkProgress::set_part(double part) {
  part_.store(static_cast<float>(part), std::memory_order_relaxed);
}

}  // namespace nunchi
