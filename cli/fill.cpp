#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/line_command.h"
#include "cli/picture.h"
#include "nunchi/views/prediction_picture.h"

namespace nunchi::cli {
namespace {

struct Arguments {
  LineCommand command;
  std::int64_t top = FillerOptions().top;
  bool picture = false;
};

std::string text_of(const FilledLine& line) {
  std::string text = line.text;
  for (const std::vector<Candidate>& mask : line.masks) {
    text += '\t';
    for (std::size_t i = 0; i < mask.size(); ++i) {
      text += fmt::format("{}{} {:.4f}", i > 0 ? " | " : "", mask[i].piece, mask[i].probability);
    }
  }
  return text;
}

std::string json_of(const FilledLine& line) {
  auto masks = nlohmann::ordered_json::array();
  for (const std::vector<Candidate>& mask : line.masks) {
    auto candidates = nlohmann::ordered_json::array();
    for (const Candidate& candidate : mask) {
      candidates.push_back({{"piece", candidate.piece},
                            {"text", candidate.text},
                            {"probability", candidate.probability}});
    }
    masks.push_back(std::move(candidates));
  }
  return json_line(nlohmann::ordered_json{{"text", line.text}, {"masks", std::move(masks)}});
}

// Collects the numbers of lines with masks beyond --max-length, which the model does not read.
struct UnreadMasks {
  std::int64_t line = 0;  // the number of the last line, from 1
  std::vector<std::int64_t> line_numbers;

  void add(const FilledLine& filled) {
    ++line;
    if (filled.unread_masks > 0) line_numbers.push_back(line);
  }
  void report() const {
    constexpr std::size_t kMaxNamed = 10;
    if (line_numbers.empty()) return;
    std::string names;
    for (std::size_t i = 0; i < std::min(kMaxNamed, line_numbers.size()); ++i) {
      names += fmt::format("{}{}", i == 0 ? "" : ", ", line_numbers[i]);
    }
    fmt::print(stderr, "nunchi: [MASK] beyond --max-length was not filled in, in line {}{}\n",
               names, line_numbers.size() > kMaxNamed ? ", …" : "");
  }
};

void report_lines(const Filler& filler, const UnreadMasks& unread) {
  LineCounts counts = filler.counts();
  if (counts.cut > 0) {
    fmt::print(stderr, "nunchi: {} too long: only the beginning was read (see --max-length)\n",
               counts.cut == 1 ? "1 line" : fmt::format("{} lines", counts.cut));
  }
  counts.cut = 0;
  report(counts, "--max-length");
  unread.report();
  const std::int64_t count = filler.without_mask();
  if (count == 0) return;
  fmt::print(stderr, "nunchi: {} {} without [MASK] left unchanged\n", count,
             count == 1 ? "line" : "lines");
}

void run(const Arguments& arguments) {
  arguments.command.run(as_masked_language_model, [&](const Pipeline& pipeline) {
    const auto filler = std::make_shared<Filler>(
        pipeline.filler({.reader = arguments.command.reader, .top = arguments.top}));
    const auto unread = std::make_shared<UnreadMasks>();
    const auto filled = std::make_shared<std::vector<FilledLine>>();  // the last lines
    const auto answers = [&arguments, filler, unread, filled](std::span<const SourceLine> lines) {
      std::vector<std::string> answers;
      *filled = filler->fill(lines);
      for (const FilledLine& line : *filled) {
        unread->add(line);
        answers.push_back(arguments.command.json ? json_of(line) : text_of(line));
      }
      return answers;
    };
    LineCommand::Handler handler{answers, [=] { report_lines(*filler, *unread); }};
    if (!arguments.picture) return handler;
    const auto inspector = std::make_shared<const Inspector>(
        pipeline.inspector({.max_length = InspectorOptions::kLongest,
                            .best = arguments.top,
                            .taps = false,
                            .gradients = false}));
    handler.picture = [=](std::span<const SourceLine> lines, std::size_t line) {
      if ((*filled)[line].masks.empty()) return std::string();
      return prediction_picture(inspector->inspect({.text = lines[line].text}), 0,
                                picture_options());
    };
    return handler;
  });
}

}  // namespace

void add_fill(CLI::App& program, Job& job) {
  CLI::App* fill =
      add_command(program, "fill",
                  "Fill in the masked words of each line\n\n"
                  "Prints each line with every [MASK] replaced by the most likely piece. "
                  "Then, for each mask, prints a tab and its candidates with their "
                  "probabilities; ▁ marks the space before a word.")
          ->group(kUsing);
  auto arguments = std::make_shared<Arguments>();
  arguments->command.add_to(*fill);
  OptionGroup(*fill, kOutputFormat)
      .add("--top", arguments->top, whole_number(1, 1000), "Candidates to print for each mask");
  add_picture(*fill, arguments->picture, "where each [MASK] looks and its candidates as bars");
  add_examples(*fill, {"echo 'The [MASK] is closed.' | nunchi fill runs/bert --top 3",
                       "echo 'The [MASK] is closed.' | nunchi fill runs/bert --picture"});
  fill->callback([=, &job] { job = [=] { run(*arguments); }; });
}

}  // namespace nunchi::cli
