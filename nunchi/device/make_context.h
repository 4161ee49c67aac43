// Makes a context from command-line options: --device, --precision, --threads, --deterministic.
#pragma once

#include <memory>
#include <string>

#include "nunchi/device/context.h"

namespace nunchi {

struct ContextOptions {
  std::string device = "cpu";  // or cuda, or cuda:N
  std::string precision;       // f32, bf16 or int8; empty: f32 on the CPU, bf16 on a GPU
  int threads = 0;             // 0: one for each core that this process may use
  bool deterministic = false;  // on a GPU: results do not depend on the batch, bit for bit
};

// Throws UsageError for an unknown device or precision, Error if this build or this machine lacks
// the device.
std::unique_ptr<ContextBase> make_context(const ContextOptions& options);

}  // namespace nunchi
