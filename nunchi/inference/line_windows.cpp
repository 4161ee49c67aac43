#include "nunchi/inference/line_windows.h"

namespace nunchi {
namespace {

// Waits for the first line, and takes the lines after it that have already arrived. Empty at the
// end of the input.
std::vector<SourceLine> read_window(LineSource& input, const LineWindowOptions& options,
                                    std::int64_t first) {
  std::vector<SourceLine> lines;
  std::size_t bytes = 0;
  std::int64_t cut_lines = input.cut_lines();
  std::string text;
  while (lines.size() < options.lines && bytes < options.bytes &&
         (lines.empty() || input.is_ready()) && input.next(text)) {
    bytes += text.size();
    SourceLine line{.number = first + static_cast<std::int64_t>(lines.size()),
                    .cut = input.cut_lines() > cut_lines};
    cut_lines = input.cut_lines();
    const std::size_t tab = options.prefixes ? text.find('\t') : text.npos;
    line.text = text.substr(0, tab);
    if (tab != text.npos) line.prefix = text.substr(tab + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

void read_windows(LineSource& input, const LineWindowOptions& options, const WindowSink& sink,
                  const std::function<void()>& flush) {
  for (std::int64_t lines_read = 0;;) {
    const std::vector<SourceLine> lines = read_window(input, options, lines_read);
    if (lines.empty() || !sink(lines)) return;
    lines_read += static_cast<std::int64_t>(lines.size());
    if (!input.is_ready()) flush();
  }
}

}  // namespace nunchi
