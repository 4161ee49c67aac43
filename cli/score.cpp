#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/device_options.h"
#include "cli/input_output.h"
#include "cli/line_command.h"
#include "cli/search_options.h"
#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"
#include "nunchi/data/corpus.h"
#include "nunchi/inference/n_best_list.h"
#include "nunchi/inference/pipeline.h"
#include "nunchi/inference/translation_format.h"

namespace nunchi::cli {
namespace {

struct Arguments {
  std::string folder, source, target;
  std::string n_best;             // the list to rescore; empty for none
  std::string feature = "Score";  // its new feature
  std::optional<double> normalize;
  bool sort = false;
  bool word_scores = false, json = false;
  std::string alignment;  // "hard", "soft" or, for none, empty
  ContextOptions device;
  ScorerOptions options;

  TranslationFormat format() const {
    return {.word_scores = word_scores, .alignment = alignment_kind(alignment)};
  }
  void check() const;
};

void Arguments::check() const {
  const auto is_stdin = [](const std::string& path) { return path == "-" ? 1 : 0; };
  if (is_stdin(source) + is_stdin(target) + is_stdin(n_best) > 1) {
    throw UsageError("only one file can be '-' (standard input).");
  }
  if (n_best.empty()) return;
  if (!target.empty()) {
    throw UsageError("--n-best has the translations of SRC; leave TGT out.");
  }
  if (word_scores || json || !alignment.empty()) {
    throw UsageError("--n-best excludes --word-scores, --alignment and --json.");
  }
}

void check_number(const Arguments& arguments, const PairScore& score) {
  if (std::isnan(score.log_probability)) {
    throw Error("the model in '" + arguments.folder + "' computes NaN; its weights are damaged.");
  }
}

// `done` is the number of scores that were printed before.
void print(const Arguments& arguments, const std::vector<PairScore>& scores, std::int64_t done) {
  for (const PairScore& score : scores) {
    check_number(arguments, score);
    fmt::print("{}", arguments.json ? to_json(arguments.format(), done++, score)
                                    : to_text(arguments.format(), score));
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
  report_unknown(totals.unknown, unit);
}

constexpr std::size_t kWindowLines = 1024;

void score_pairs(const Arguments& arguments, const Pipeline& pipeline) {
  const Scorer scorer = pipeline.scorer(arguments.options);
  PairReader pairs(
      {.source = input_path(arguments.source), .target = input_path(arguments.target)});
  ScoreTotals totals;
  for (bool more = true; more;) {
    std::vector<TextPair> window;
    RawPair pair;
    while (window.size() < kWindowLines && (more = pairs.next(pair))) {
      window.push_back({pair.source, pair.target});
    }
    const std::vector<PairScore> scores = scorer.score(window);
    print(arguments, scores, totals.count);
    totals.add(scores);
  }
  report(totals, "pair");
}

void score_lines(const Arguments& arguments, const Pipeline& pipeline) {
  const LineScorer scorer = pipeline.line_scorer(arguments.options);
  LineReader lines(input_path(arguments.source));
  ScoreTotals totals;
  for (bool more = true; more;) {
    std::vector<std::string> window;
    std::string line;
    while (window.size() < kWindowLines && (more = lines.next(line))) window.push_back(line);
    const std::vector<PairScore> scores = scorer.score(window);
    print(arguments, scores, totals.count);
    totals.add(scores);
  }
  report(totals, "line");
}

// The entries of an n-best list with their source lines, in constant memory: the entries of a
// sentence follow one another, and the sentences are in the order of the source.
class NBestReader {
 public:
  explicit NBestReader(const Arguments& arguments)
      : sources_(input_path(arguments.source)), list_(input_path(arguments.n_best)) {}

  struct Entry {
    NBestEntry text;
    std::string source;
  };
  // Returns false at the end. Throws Error for a line that is no entry or has no source line.
  bool next(Entry& entry) {
    std::string line;
    if (!list_.next(line)) return false;
    const std::string where = fmt::format("{}:{}", list_.path().string(), list_.line_number());
    entry.text = parse_n_best(line, where);
    if (entry.text.id + 1 < sources_.line_number()) {
      throw Error(fmt::format("{}: sentence {} follows sentence {}; ids must ascend.", where,
                              entry.text.id, sources_.line_number() - 1));
    }
    while (sources_.line_number() <= entry.text.id) {
      if (sources_.next(source_)) continue;
      throw Error(fmt::format("{}: there is no sentence {}: {} has {} lines.", where, entry.text.id,
                              sources_.path().string(), grouped(sources_.line_number())));
    }
    entry.source = source_;
    return true;
  }

 private:
  LineReader sources_, list_;
  std::string source_;  // the last line of sources_ that was read
};

// Scores entries and prints them with the new feature and score.
class Rescorer {
 public:
  Rescorer(const Arguments& arguments, const Pipeline& pipeline)
      : arguments_(arguments),
        scorer_(pipeline.scorer(arguments.options)),
        normalize_(arguments.normalize.value_or(pipeline.search().normalize)) {}

  void print(std::vector<NBestReader::Entry>& entries) {
    std::vector<TextPair> pairs;
    pairs.reserve(entries.size());
    for (const NBestReader::Entry& entry : entries) {
      pairs.push_back({entry.source, entry.text.text});
    }
    const std::vector<PairScore> scores = scorer_.score(pairs);
    totals_.add(scores);
    struct Scored {
      NBestEntry* entry;
      double score;
    };
    std::vector<Scored> order;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      check_number(arguments_, scores[i]);
      NBestEntry& entry = entries[i].text;
      const double score = scores[i].log_probability /
                           std::pow(static_cast<double>(scores[i].pieces.size()), normalize_);
      entry.features += fmt::format("{}{}= {:.4f}", entry.features.empty() ? "" : " ",
                                    arguments_.feature, scores[i].log_probability);
      entry.score = fmt::format("{:.4f}", score);
      order.push_back({&entry, score});
    }
    if (arguments_.sort) {
      std::ranges::stable_sort(order, [](const Scored& a, const Scored& b) {
        return a.entry->id != b.entry->id ? a.entry->id < b.entry->id : a.score > b.score;
      });
    }
    for (const Scored& scored : order) fmt::print("{}", to_text(*scored.entry));
    entries.clear();
  }
  const ScoreTotals& totals() const { return totals_; }

 private:
  const Arguments& arguments_;
  Scorer scorer_;
  double normalize_;
  ScoreTotals totals_;
};

void rescore(const Arguments& arguments, const Pipeline& pipeline) {
  Rescorer rescorer(arguments, pipeline);
  NBestReader reader(arguments);
  std::vector<NBestReader::Entry> window;
  for (NBestReader::Entry entry; reader.next(entry);) {
    // Sorting needs all entries of a sentence in one window.
    const bool full = window.size() >= kWindowLines &&
                      (!arguments.sort || window.back().text.id != entry.text.id);
    if (full) rescorer.print(window);
    window.push_back(entry);
  }
  rescorer.print(window);
  report(rescorer.totals(), "pair");
}

// Throws unless the model can score the input: pairs, or lines of one text.
void check_model(const Arguments& arguments, const Model& model) {
  as_scoring_model(model);
  const bool pairs = !arguments.target.empty() || !arguments.n_best.empty();
  const bool translates = ability_of<TranslationModel>(model) != nullptr;
  if (translates && !pairs) {
    throw UsageError(
        "a translation model scores pairs of lines, SRC and TGT; see 'nunchi score --help'.");
  }
  if (!translates && !arguments.n_best.empty()) {
    throw UsageError("--n-best needs a translation model.");
  }
  if (!translates && pairs) {
    throw UsageError("a language model scores the lines of one text; leave TGT out.");
  }
  if (!translates && !arguments.alignment.empty()) {
    throw UsageError("--alignment needs a translation model.");
  }
}

void run(const Arguments& arguments) {
  const auto check = [&](const Model& model) { check_model(arguments, model); };
  const Pipeline pipeline =
      Pipeline::open(arguments.folder, {.device = arguments.device, .check = check});
  if (!arguments.n_best.empty()) {
    rescore(arguments, pipeline);
  } else if (arguments.target.empty()) {
    score_lines(arguments, pipeline);
  } else {
    score_pairs(arguments, pipeline);
  }
}

ValueKind feature_name() {
  ValueKind kind = text("NAME", "a name without spaces, | and =");
  kind.accepts = [](const std::string& name) {
    return !name.empty() && name.find_first_of(" \t|=") == name.npos;
  };
  return kind;
}

}  // namespace

void add_score(CLI::App& program, Job& job) {
  CLI::App* score =
      add_command(program, "score",
                  "Print the log-probability of translations or texts\n\n"
                  "A translation model scores each line of TGT as a translation of the "
                  "same line of SRC, or the entries of an n-best list; a language model "
                  "scores each line of SRC.")
          ->group(kUsing);
  auto arguments = std::make_shared<Arguments>();
  add_model(*score, arguments->folder);
  OptionGroup positional(*score, kArguments);
  positional.add("SRC", arguments->source, input_file(), "Source lines, or the lines of a text")
      ->required();
  positional.add("TGT", arguments->target, input_file(),
                 "Translations of SRC; omit for a language model");
  OptionGroup format(*score, kOutputFormat);
  format.flag("--word-scores", arguments->word_scores, "Add the log-probability of each token");
  add_alignment(*score, arguments->alignment);
  add_json(*score, arguments->json, "Print one JSON object for each line");
  OptionGroup lists(*score, "N-best lists");
  const CLI::Option* n_best =
      lists.add("--n-best", arguments->n_best, input_file(),
                "Rescore translations of SRC: id ||| text ||| features ||| score");
  const std::vector<CLI::Option*> list_options{
      lists.add("--n-best-feature", arguments->feature, feature_name(),
                "Name of the feature to add: the log-probability"),
      lists
          .add("--normalize", arguments->normalize, number(0),
               "Score: log-probability divided by length to this power")
          ->default_str(kModelDefault),
      lists.flag("--sort", arguments->sort, "Sort the entries of each sentence, best score first")};
  OptionGroup(*score, kBatches)
      .add("--max-length", arguments->options.max_length, whole_number(2, 1 << 20),
           "Maximum tokens of a line; longer lines are cut");
  add_device_options(*score, arguments->device);
  add_examples(*score,
               {"nunchi score runs/demo runs/demo/data/held-out.ko runs/demo/data/held-out.en",
                "nunchi score runs/gpt novel.txt --word-scores",
                "nunchi score runs/demo source.ko --n-best list.txt --sort"});
  score->callback([=, &job] {
    for (const CLI::Option* option : list_options) {
      if (*option && !*n_best) {
        throw UsageError(option->get_name() + " has no effect without --n-best.");
      }
    }
    arguments->check();
    arguments->options.alignment = !arguments->alignment.empty();
    job = [=] { run(*arguments); };
  });
}

}  // namespace nunchi::cli
