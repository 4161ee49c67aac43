#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/line_command.h"

namespace nunchi::cli {
namespace {

struct Arguments {
  LineCommand command;
  std::string pooling = "mean";
  bool normalize = false;
};

std::string text_of(const std::vector<float>& vector) {
  std::string text;
  for (const float value : vector) text += fmt::format("{}{:.7g}", text.empty() ? "" : " ", value);
  return text;
}

void report_lines(LineCounts counts) {
  if (counts.empty > 0) {
    fmt::print(stderr, "nunchi: {} {} without words: a vector of zeros\n", counts.empty,
               counts.empty == 1 ? "line" : "lines");
  }
  counts.empty = 0;
  report(counts, "--max-length");
}

void run(const Arguments& arguments) {
  arguments.command.run(as_embedding_model, [&](const Pipeline& pipeline) {
    const EmbedderOptions options{
        .reader = arguments.command.reader,
        .pooling = arguments.pooling == "mean" ? Pooling::mean : Pooling::first,
        .normalize = arguments.normalize};
    const auto embedder = std::make_shared<Embedder>(pipeline.embedder(options));
    const auto answers = [&arguments, embedder](std::span<const SourceLine> lines) {
      std::vector<std::string> answers;
      const std::vector<std::vector<float>> vectors = embedder->embed(lines);
      for (std::size_t i = 0; i < lines.size(); ++i) {
        answers.push_back(
            arguments.command.json
                ? json_line(nlohmann::ordered_json{{"text", lines[i].text}, {"vector", vectors[i]}})
                : text_of(vectors[i]));
      }
      return answers;
    };
    return LineCommand::Handler{answers, [embedder] { report_lines(embedder->counts()); }};
  });
}

}  // namespace

void add_embed(CLI::App& program, Job& job) {
  CLI::App* embed = add_command(program, "embed",
                                "Turn each line into a vector\n\n"
                                "Prints the numbers of each vector, separated by spaces; "
                                "numpy.loadtxt reads them.")
                        ->group(kUsing);
  auto arguments = std::make_shared<Arguments>();
  arguments->command.add_to(*embed);
  OptionGroup vectors(*embed, "Vectors");
  vectors.add("--pooling", arguments->pooling, one_of({"mean", "first"}),
              "Average the vectors of all tokens, or use the vector of the first token, <s>");
  vectors.flag("--normalize", arguments->normalize, "Scale each vector to length 1");
  add_examples(*embed, {"nunchi embed runs/bert -i lines.txt -o vectors.txt --normalize"});
  embed->callback([=, &job] { job = [=] { run(*arguments); }; });
}

}  // namespace nunchi::cli
