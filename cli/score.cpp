#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/device_options.h"
#include "nunchi/data/corpus.h"
#include "nunchi/evaluation/perplexity.h"
#include "nunchi/translate/scorer.h"
#include "nunchi/translate/translator.h"

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
    std::string line = fmt::format("{:.4f}", score.log_probability);
    if (arguments.word_scores) {
      for (std::size_t i = 0; i < score.pieces.size(); ++i) {
        line += fmt::format("\t{} {:.4f}", score.pieces[i], score.token_scores[i]);
      }
    }
    fmt::print("{}\n", line);
  }
}

void run(const Arguments& arguments) {
  const std::unique_ptr<ContextBase> context = make_context(arguments.device);
  const TranslationFolder folder(*context, arguments.folder);
  const Scorer scorer(folder.model(), folder.tokenizers(), arguments.options);
  PairReader pairs({.source = arguments.source, .target = arguments.target});
  double total = 0;
  std::int64_t tokens = 0, cut = 0, lines = 0;
  constexpr std::size_t kWindow = 1024;
  for (bool more = true; more;) {
    std::vector<TextPair> window;
    RawPair pair;
    while (window.size() < kWindow && (more = pairs.next(pair))) {
      window.push_back({pair.source, pair.target});
    }
    const std::vector<PairScore> scores = scorer.score(window);
    print(arguments, scores);
    for (const PairScore& score : scores) {
      total += score.log_probability;
      tokens += static_cast<std::int64_t>(score.pieces.size());
      cut += score.cut ? 1 : 0;
      ++lines;
    }
  }
  fmt::print(stderr, "nunchi: {} {}, {} target tokens, perplexity {:.4f}\n", lines,
             lines == 1 ? "pair" : "pairs", tokens,
             tokens > 0 ? evaluation::perplexity(-total, tokens) : 0.0);
  if (cut > 0) {
    fmt::print(stderr, "nunchi: {} {} too long and cut (see --max-length)\n", cut,
               cut == 1 ? "pair" : "pairs");
  }
}

}  // namespace

void add_score(CLI::App& program) {
  CLI::App* score = program.add_subcommand("score", "Log-probability of given translations");
  auto arguments = std::make_shared<Arguments>();
  score->add_option("MODEL", arguments->folder, "Model folder")->required();
  score->add_option("SRC", arguments->source, "Source lines")->required();
  score->add_option("TGT", arguments->target, "Their translations")->required();
  score->add_flag("--word-scores", arguments->word_scores, "Print each token's log-probability");
  score->add_option("--max-length", arguments->options.max_length, "Tokens of a side; more are cut")
      ->check(CLI::Range(2, 1 << 20));
  add_device_options(*score, arguments->device);
  score->callback([=] { run(*arguments); });
}

}  // namespace nunchi::cli
