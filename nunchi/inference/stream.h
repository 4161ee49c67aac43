// Translating a stream: line by line, in order, in constant memory, without waiting for input that
// has not come.
#pragma once

#include <functional>
#include <span>

#include "nunchi/data/lines.h"
#include "nunchi/inference/translator.h"

namespace nunchi {

struct StreamOptions {
  // Lines that are read ahead to be sorted by length, as long as they are there.
  std::size_t window = 1024;
  std::size_t window_bytes = std::size_t{4} << 20;
  bool prefixes = false;  // each line is "source \t what the translation begins with"
};

// Gets the lines of a window, in order. False: nobody wants more.
using WindowSink = std::function<bool(std::span<const SourceLine> lines)>;

// Reads window by window until the input ends or the sink has had enough. `flush` is called
// whenever no more input is waiting: whoever talks to us through pipes gets an answer.
void read_windows(LineSource& input, const StreamOptions& options, const WindowSink& sink,
                  const std::function<void()>& flush);

// Gets the line's number, from 0, and its translations, in the order of the lines. False: nobody
// wants more.
using TranslationSink = std::function<bool(std::int64_t number, const Translations& translations)>;

// Translates until the input ends or the sink has had enough; see read_windows() for `flush`.
// Returns the number of lines.
std::int64_t translate_stream(Translator& translator, LineSource& input,
                              const StreamOptions& options, const TranslationSink& sink,
                              const std::function<void()>& flush);

}  // namespace nunchi
