// Reads a stream of lines window by window: in constant memory, and without waiting for more input
// while lines that have arrived can be processed.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "nunchi/data/lines.h"
#include "nunchi/inference/source_line.h"

namespace nunchi {

struct LineWindowOptions {
  // A window ends at this many lines or bytes, or when no more input is waiting. Its lines can be
  // sorted by length, so larger windows make fuller batches.
  std::size_t lines = 1024;
  std::size_t bytes = std::size_t{4} << 20;
  bool prefixes = false;  // a line is the source, a tab and the beginning of its translation
};

// Callback that gets the lines of a window in order. Returns false to stop reading.
using WindowSink = std::function<bool(std::span<const SourceLine> lines)>;

// Reads window by window until the input ends or the sink returns false. Calls `flush` whenever no
// more input is waiting, so that a program at the other end of a pipe gets its answer.
void read_windows(LineSource& input, const LineWindowOptions& options, const WindowSink& sink,
                  const std::function<void()>& flush);

}  // namespace nunchi
