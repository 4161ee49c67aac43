// Where a command computes, and how.
#pragma once

#include <CLI/CLI.hpp>

#include "nunchi/device/make_context.h"

namespace nunchi::cli {

// --device, --precision, --threads and --deterministic.
inline void add_device_options(CLI::App& command, ContextOptions& options) {
  command.add_option("--device", options.device, "cpu, cuda or cuda:N")->capture_default_str();
  command.add_option("--precision", options.precision,
                     "f32 or bf16; as it comes: f32 on the CPU, bf16 on a GPU");
  command.add_option("--threads", options.threads, "Threads to use; 0: all cores")
      ->check(CLI::Range(0, 1024));
  command.add_flag("--deterministic", options.deterministic,
                   "On a GPU: a sentence's result never depends on its batch");
}

}  // namespace nunchi::cli
