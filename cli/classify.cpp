#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/line_command.h"

namespace nunchi::cli {
namespace {

using Labels = std::vector<LabelProbability>;  // most likely first

struct Arguments {
  LineCommand command;
  bool probabilities = false;
};

std::string text_of(const Labels& labels, bool probabilities) {
  if (labels.empty()) return "";
  if (!probabilities) return labels.front().label;
  std::string text;
  for (const LabelProbability& one : labels) {
    text += fmt::format("{}{}\t{:.4f}", text.empty() ? "" : "\t", one.label, one.probability);
  }
  return text;
}

std::string json_of(const Labels& labels) {
  nlohmann::ordered_json json = {{"label", nullptr},
                                 {"probabilities", nlohmann::ordered_json::object()}};
  if (!labels.empty()) json["label"] = labels.front().label;
  for (const LabelProbability& one : labels) json["probabilities"][one.label] = one.probability;
  return json_line(json);
}

void run(const Arguments& arguments) {
  arguments.command.run(as_classifier, [&](const Pipeline& pipeline) {
    const auto classifier =
        std::make_shared<LineClassifier>(pipeline.classifier(arguments.command.reader));
    const auto answers = [&arguments, classifier](std::span<const SourceLine> lines) {
      std::vector<std::string> answers;
      for (const Labels& labels : classifier->classify(lines)) {
        answers.push_back(arguments.command.json ? json_of(labels)
                                                 : text_of(labels, arguments.probabilities));
      }
      return answers;
    };
    return LineCommand::Handler{answers,
                                [classifier] { report(classifier->counts(), "--max-length"); }};
  });
}

}  // namespace

void add_classify(CLI::App& program, Job& job) {
  CLI::App* classify = add_command(program, "classify",
                                   "Classify each line with a fine-tuned model\n\n"
                                   "Prints the most likely label of each line.")
                           ->group(kUsing);
  auto arguments = std::make_shared<Arguments>();
  arguments->command.add_to(*classify);
  OptionGroup(*classify, kOutputFormat)
      .flag("--probabilities", arguments->probabilities,
            "Print all labels with their probabilities, most likely first, separated by tabs");
  add_examples(*classify, {"nunchi classify runs/labels -i lines.txt -o labels.txt",
                           "echo 'a line of text' | nunchi classify runs/labels --probabilities"});
  classify->callback([=, &job] { job = [=] { run(*arguments); }; });
}

}  // namespace nunchi::cli
