// The device that a command computes on.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/option_group.h"
#include "nunchi/device/make_context.h"

namespace nunchi::cli {

// --device, --precision, --threads and --deterministic.
inline void add_device_options(CLI::App& command, ContextOptions& options) {
  OptionGroup device(command, "Device");
  device.add("--device", options.device, text("NAME", "cpu, cuda or cuda:N"),
             "Device to compute on");
  device
      .add("--precision", options.precision, one_of({"f32", "bf16", "int8"}, "TYPE"),
           "Number format of the weights; int8 is for inference on the CPU")
      ->default_str("f32 on the CPU, bf16 on a GPU");
  device.add("--threads", options.threads, whole_number(0, 1024), "CPU threads; 0 uses all cores");
  device.flag("--deterministic", options.deterministic,
              "On a GPU: keep a sentence's result independent of its batch");
}

}  // namespace nunchi::cli
