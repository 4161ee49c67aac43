#include "nunchi/inference/translate_stream.h"

namespace nunchi {

std::int64_t translate_stream(Translator& translator, LineSource& input,
                              const LineWindowOptions& options, const TranslationSink& sink,
                              const std::function<void()>& flush) {
  std::int64_t done = 0;
  const auto translate = [&](std::span<const SourceLine> lines) {
    for (const Translations& translations : translator.translate(lines)) {
      if (!sink(done, translations)) return false;
      ++done;
    }
    return true;
  };
  read_windows(input, options, translate, flush);
  return done;
}

}  // namespace nunchi
