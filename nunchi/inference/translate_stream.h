// Translates a stream: line by line, in order, in constant memory.
#pragma once

#include <cstdint>
#include <functional>

#include "nunchi/inference/line_windows.h"
#include "nunchi/inference/translator.h"

namespace nunchi {

// Callback that gets the number of a line, from 0, and its translations, in the order of the lines.
// Returns false to stop translating.
using TranslationSink = std::function<bool(std::int64_t number, const Translations& translations)>;

// Translates until the input ends or the sink returns false; read_windows() describes `flush`.
// Returns the number of lines.
std::int64_t translate_stream(Translator& translator, LineSource& input,
                              const LineWindowOptions& options, const TranslationSink& sink,
                              const std::function<void()>& flush);

}  // namespace nunchi
