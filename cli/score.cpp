#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "cli/commands.h"
#include "cli/device_options.h"
#include "nunchi/base/error.h"
#include "nunchi/data/corpus.h"
#include "nunchi/inference/pipeline.h"

namespace nunchi::cli {
namespace {

struct Arguments {
  std::string folder, source, target;
  bool word_scores = false;
  ContextOptions device;
  ScorerOptions options;
};

void print(const Arguments& arguments, const std::vector<PairScore>& scores) {
  for (const PairScore& score : scores) {
    if (std::isnan(score.log_probability)) {
      throw Error("the model in '" + arguments.folder + "' computes NaN; its weights are damaged.");
    }
    std::string line = fmt::format("{:.4f}", score.log_probability);
    if (arguments.word_scores) {
      for (std::size_t i = 0; i < score.pieces.size(); ++i) {
        line += fmt::format("\t{} {:.4f}", score.pieces[i], score.token_scores[i]);
      }
    }
    fmt::print("{}\n", line);
  }
}

void report(const ScoreTotals& totals, const char* unit) {
  const auto count_text = [&](std::int64_t count) {
    return fmt::format("{} {}{}", count, unit, count == 1 ? "" : "s");
  };
  if (totals.count == 0) {
    fmt::print(stderr, "nunchi: nothing to score: the input is empty\n");
    return;
  }
  fmt::print(stderr, "nunchi: {}, {} target tokens, perplexity {:.4f}\n", count_text(totals.count),
             totals.tokens, totals.perplexity());
  if (totals.cut > 0) {
    fmt::print(stderr, "nunchi: {} too long: cut (see --max-length)\n", count_text(totals.cut));
  }
}

constexpr std::size_t kWindowLines = 1024;

void score_pairs(const Arguments& arguments, const Pipeline& pipeline) {
  const Scorer scorer = pipeline.scorer(arguments.options);
  PairReader pairs({.source = arguments.source, .target = arguments.target});
  ScoreTotals totals;
  for (bool more = true; more;) {
    std::vector<TextPair> window;
    RawPair pair;
    while (window.size() < kWindowLines && (more = pairs.next(pair))) {
      window.push_back({pair.source, pair.target});
    }
    const std::vector<PairScore> scores = scorer.score(window);
    print(arguments, scores);
    totals.add(scores);
  }
  report(totals, "pair");
}

void score_lines(const Arguments& arguments, const Pipeline& pipeline) {
  const LineScorer scorer = pipeline.line_scorer(arguments.options);
  LineReader lines(arguments.source);
  ScoreTotals totals;
  for (bool more = true; more;) {
    std::vector<std::string> window;
    std::string line;
    while (window.size() < kWindowLines && (more = lines.next(line))) window.push_back(line);
    const std::vector<PairScore> scores = scorer.score(window);
    print(arguments, scores);
    totals.add(scores);
  }
  report(totals, "line");
}

// Throws unless the model can score the input: pairs, or lines of one text.
void check_model(const Arguments& arguments, const Model& model) {
  as_scoring_model(model);
  const bool translates = ability_of<TranslationModel>(model) != nullptr;
  if (translates && arguments.target.empty()) {
    throw UsageError(
        "a translation model scores pairs of lines, SRC and TGT; see 'nunchi score --help'.");
  }
  if (!translates && !arguments.target.empty()) {
    throw UsageError("a language model scores the lines of one text; leave TGT out.");
  }
}

void run(const Arguments& arguments) {
  const auto check = [&](const Model& model) { check_model(arguments, model); };
  const Pipeline pipeline =
      Pipeline::open(arguments.folder, {.device = arguments.device, .check = check});
  if (arguments.target.empty()) {
    score_lines(arguments, pipeline);
  } else {
    score_pairs(arguments, pipeline);
  }
}

}  // namespace

void add_score(CLI::App& program, Job& job) {
  CLI::App* score =
      add_command(program, "score",
                  "Print the log-probability of translations or texts\n\n"
                  "A translation model scores each line of TGT as a translation of the "
                  "same line of SRC; a language model scores each line of SRC.")
          ->group(kUsing);
  auto arguments = std::make_shared<Arguments>();
  add_model(*score, arguments->folder);
  const ValueKind file = text("FILE", "a text file, plain, .gz or .xz");
  OptionGroup positional(*score, kArguments);
  positional.add("SRC", arguments->source, file, "Source lines, or the lines of a text")
      ->required();
  positional.add("TGT", arguments->target, file, "Translations of SRC; omit for a language model");
  OptionGroup(*score, kOutputFormat)
      .flag("--word-scores", arguments->word_scores, "Add the log-probability of each token");
  OptionGroup(*score, kBatches)
      .add("--max-length", arguments->options.max_length, whole_number(2, 1 << 20),
           "Maximum tokens of a line; longer lines are cut");
  add_device_options(*score, arguments->device);
  add_examples(*score,
               {"nunchi score runs/demo runs/demo/data/held-out.ko runs/demo/data/held-out.en",
                "nunchi score runs/gpt novel.txt --word-scores"});
  score->callback([=, &job] { job = [=] { run(*arguments); }; });
}

}  // namespace nunchi::cli
