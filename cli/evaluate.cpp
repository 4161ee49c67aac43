#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands.h"
#include "cli/option_group.h"
#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"
#include "nunchi/evaluation/metric.h"

namespace nunchi::cli {
namespace {

using evaluation::BleuScore;
using evaluation::BootstrapOptions;
using evaluation::Estimate;
using evaluation::Lines;
using evaluation::Metric;
using evaluation::MetricResult;
using evaluation::TextFile;
using Json = nlohmann::ordered_json;

struct Arguments {
  std::string hypotheses;
  std::vector<std::string> references;
  std::string against;
  std::vector<std::string> metrics{"bleu", "chrf", "chrf++"};
  std::string tokenizer = "13a";
  std::string mecab_library, mecab_dictionary;
  bool lowercase = false;
  evaluation::TerOptions ter;
  bool json = false;
  bool sentence = false;
  std::optional<int> resamples;
  std::uint64_t seed = BootstrapOptions{}.seed;

  bool paired() const { return !against.empty(); }
  std::optional<BootstrapOptions> bootstrap() const {
    if (!resamples && !paired()) return std::nullopt;
    return BootstrapOptions{.resamples = resamples.value_or(BootstrapOptions{}.resamples),
                            .seed = seed};
  }
  void check() const;
};

// The contents of the files; all have the same number of lines.
struct Corpus {
  Lines hypotheses;
  std::vector<Lines> references;
  Lines baseline;  // empty without --against
};

void Arguments::check() const {
  const auto from_stdin =
      std::ranges::count(references, "-") + (hypotheses == "-" ? 1 : 0) + (against == "-" ? 1 : 0);
  if (from_stdin > 1) throw UsageError("only one file can be '-' (standard input).");
  if (sentence && bootstrap()) {
    throw UsageError(
        "--sentence scores each line separately; it excludes --against and --bootstrap.");
  }
}

Corpus read(const Arguments& arguments) {
  const auto read_one = [](const std::string& path) {
    TextFile text = evaluation::read_text(path);
    if (text.repaired > 0) {
      fmt::print(stderr, "nunchi: {}: {} with invalid UTF-8: replaced by U+FFFD.\n", text.name,
                 text.repaired == 1 ? "1 line" : grouped(text.repaired) + " lines");
    }
    return text;
  };
  TextFile hypotheses = read_one(arguments.hypotheses);
  const auto read_other = [&](const std::string& path) {
    TextFile other = read_one(path);
    evaluation::check_same_lines(hypotheses, other);
    return std::move(other.lines);
  };
  Corpus corpus;
  for (const std::string& path : arguments.references) {
    corpus.references.push_back(read_other(path));
  }
  if (arguments.paired()) corpus.baseline = read_other(arguments.against);
  if (corpus.baseline == hypotheses.lines) {
    fmt::print(stderr, "nunchi: {} and {} have the same lines; they do not differ.\n",
               arguments.hypotheses, arguments.against);
  }
  corpus.hypotheses = std::move(hypotheses.lines);
  return corpus;
}

// Tokenized input is the most common cause of scores that cannot be compared; sacreBLEU warns too.
void warn_of_tokenized_lines(const Arguments& arguments, const Lines& hypotheses) {
  constexpr std::ptrdiff_t kMinLines = 100;
  const auto lines =
      std::ranges::count_if(hypotheses, [](const auto& line) { return line.ends_with(" ."); });
  if (lines < kMinLines || arguments.tokenizer != "13a") return;
  fmt::print(stderr,
             "nunchi: {} lines of {} end in ' .'. BLEU expects plain text; is this file "
             "tokenized?\n",
             grouped(lines), arguments.hypotheses);
}

Json to_json(const Metric& metric, const MetricResult& result) {
  Json json = {{"score", result.score}, {"signature", metric.signature}};
  if (metric.bleu) {
    const BleuScore bleu = metric.bleu(result.sums);
    json["precisions"] = bleu.precisions;
    json["brevity_penalty"] = bleu.brevity_penalty;
    json["ratio"] = bleu.ratio;
    json["hypothesis_length"] = bleu.hypothesis_length;
    json["reference_length"] = bleu.reference_length;
    json["counts"] = bleu.matched;
    json["totals"] = bleu.total;
    json["details"] = bleu.details();
  }
  if (result.ter) {
    json["edits"] = result.ter->edits;
    json["reference_length"] = result.ter->reference_length;
  }
  if (result.estimate) {
    json["mean"] = result.estimate->mean;
    json["interval"] = result.estimate->half_width;
  }
  if (result.baseline) {
    json["against"] = {{"score", result.baseline_score},
                       {"mean", result.baseline->mean},
                       {"interval", result.baseline->half_width}};
    json["identical"] = result.identical;
    json["p_value"] = result.p_value;
  }
  return json;
}

void print(const Metric& metric, const MetricResult& result) {
  const auto row = [](std::string_view label, const std::string& value) {
    fmt::print("{:<18}{}\n", label, value);
  };
  const auto with_estimate = [](double score, const std::optional<Estimate>& estimate) {
    if (!estimate) return fmt::format("{:>6.2f}", score);
    return fmt::format("{:>6.2f}   resampled {:.2f} ± {:.2f}", score, estimate->mean,
                       estimate->half_width);
  };
  row(metric.name, with_estimate(result.score, result.estimate));
  if (result.baseline) {
    row("  against", with_estimate(result.baseline_score, result.baseline));
    const double difference = result.score - result.baseline_score;
    row("  difference", result.identical
                            ? fmt::format("{:>6.2f}   no line differs", 0.0)
                            : fmt::format("{:>+6.2f}   p = {:.4f}", difference, result.p_value));
  }
  if (metric.bleu) {
    const BleuScore bleu = metric.bleu(result.sums);
    const auto& p = bleu.precisions;
    row("  precisions", fmt::format("{:>5.1f} / {:.1f} / {:.1f} / {:.1f}", p[0], p[1], p[2], p[3]));
    row("  brevity penalty", fmt::format("{:>7.3f}", bleu.brevity_penalty));
    row("  length", fmt::format("{:>7.3f}   {} of {} words", bleu.ratio,
                                grouped(bleu.hypothesis_length), grouped(bleu.reference_length)));
  }
  if (result.ter) {
    row("  edits",
        fmt::format("{:>6}    in {:.1f} words", result.ter->edits, result.ter->reference_length));
  }
  row("  signature", " " + metric.signature);
}

// Prints one line of scores for each line of text, one column for each metric.
void run_sentences(const std::vector<Metric>& metrics, const Corpus& corpus, bool as_json) {
  std::vector<std::vector<double>> columns;
  Json json = {{"lines", corpus.hypotheses.size()}, {"references", corpus.references.size()}};
  for (const Metric& metric : metrics) {
    columns.push_back(sentence_scores(metric, corpus.hypotheses));
    if (as_json)
      json[metric.key] = {{"sentences", columns.back()}, {"signature", metric.signature}};
    else
      fmt::print(stderr, "nunchi: {} {}\n", metric.name, metric.signature);
  }
  if (as_json) {
    fmt::print("{}\n", json.dump());
    return;
  }
  for (std::size_t line = 0; line < corpus.hypotheses.size(); ++line) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      fmt::print("{}{:.2f}", c == 0 ? "" : "\t", columns[c][line]);
    }
    fmt::print("\n");
  }
}

void run(const Arguments& arguments) {
  const Corpus corpus = read(arguments);
  const evaluation::MetricOptions options{
      .tokenizer = arguments.tokenizer,
      .mecab = {.library = arguments.mecab_library, .dictionary = arguments.mecab_dictionary},
      .lowercase = arguments.lowercase,
      .ter = arguments.ter,
      .sentence = arguments.sentence,
      .bootstrap = arguments.bootstrap()};
  std::vector<Metric> metrics;
  for (const std::string& key : arguments.metrics) {
    if (std::ranges::find(metrics, key, &Metric::key) != metrics.end()) continue;
    metrics.push_back(make_metric(key, options, corpus.references));
    if (key == "bleu") warn_of_tokenized_lines(arguments, corpus.hypotheses);
  }
  if (arguments.sentence) return run_sentences(metrics, corpus, arguments.json);
  Json json = {{"lines", corpus.hypotheses.size()}, {"references", corpus.references.size()}};
  for (const Metric& metric : metrics) {
    const MetricResult result =
        evaluation::evaluate(metric, corpus.hypotheses, corpus.baseline, arguments.bootstrap());
    if (arguments.json) {
      json[metric.key] = to_json(metric, result);
    } else {
      print(metric, result);
    }
  }
  if (arguments.json) fmt::print("{}\n", json.dump());
}

}  // namespace

void add_evaluate(CLI::App& program, Job& job) {
  CLI::App* evaluate = add_command(program, "evaluate",
                                   "Score translations with BLEU, chrF, chrF++ or TER\n\n"
                                   "Scores and signatures equal those of sacreBLEU.")
                           ->group(kMeasuring);
  auto a = std::make_shared<Arguments>();
  const ValueKind file = text("FILE", "a text file, plain, .gz or .xz, or - for standard input");
  OptionGroup(*evaluate, kArguments)
      .add("HYP", a->hypotheses, file, "Translations, one on each line")
      ->required();
  OptionGroup texts(*evaluate, kInputAndOutput);
  texts
      .add("--reference", a->references, file, "Reference translations; several files are allowed")
      ->required();
  texts.add("--against", a->against, file, "Translations of another system to compare with");
  OptionGroup metrics(*evaluate, "Metrics");
  metrics
      .add("--metric", a->metrics, one_of(evaluation::metric_keys()),
           "Metrics to compute, separated by commas")
      ->delimiter(',')
      ->default_str("bleu,chrf,chrf++");
  metrics.add("--tokenize", a->tokenizer, one_of(evaluation::bleu_tokenizer_names()),
              "How BLEU splits lines into words");
  metrics.flag("--lowercase", a->lowercase,
               "Ignore the case of letters in BLEU and chrF; TER does unless --ter-case-sensitive");
  metrics.flag("--sentence", a->sentence, "Score each line separately");
  OptionGroup mecab(*evaluate, "MeCab");
  const std::vector<CLI::Option*> mecab_options{
      mecab.add("--mecab-library", a->mecab_library, text("FILE", "a file, libmecab.so.2"),
                "MeCab's library, for --tokenize ja-mecab or ko-mecab"),
      mecab.add("--mecab-dictionary", a->mecab_dictionary, text("FOLDER", "a folder with sys.dic"),
                "Folder of MeCab's dictionary")};
  OptionGroup ter(*evaluate, "TER");
  const std::vector<CLI::Option*> ter_options{
      ter.flag("--ter-normalized", a->ter.tokenizer.normalized,
               "Split off punctuation before counting edits"),
      ter.flag("--ter-no-punct", a->ter.tokenizer.no_punctuation, "Remove punctuation"),
      ter.flag("--ter-asian-support", a->ter.tokenizer.asian_support,
               "Extend both to Chinese and Japanese characters"),
      ter.flag("--ter-case-sensitive", a->ter.case_sensitive,
               "Count a different case of letters as an edit")};
  OptionGroup significance(*evaluate, "Significance");
  significance
      .add("--bootstrap", a->resamples, whole_number(1, 1'000'000),
           "Resamples for confidence intervals and p-values")
      ->default_str(fmt::format("{} with --against", BootstrapOptions{}.resamples));
  significance.add("--seed", a->seed, seed(), "Random seed for the resamples");
  add_json(*evaluate, a->json, "Print one JSON object");
  add_examples(*evaluate, {"nunchi evaluate output.txt --reference reference.txt",
                           "nunchi evaluate new.txt --reference ref.txt --against old.txt --json"});
  evaluate->callback([=, &job] {
    if (evaluate->count("--seed") > 0 && !a->bootstrap()) {
      throw UsageError("--seed has no effect without --bootstrap or --against.");
    }
    for (const CLI::Option* option : ter_options) {
      if (*option && std::ranges::find(a->metrics, "ter") == a->metrics.end()) {
        throw UsageError(option->get_name() + " has no effect without --metric ter.");
      }
    }
    for (const CLI::Option* option : mecab_options) {
      if (*option && !needs_mecab(evaluation::bleu_tokenizer_of(a->tokenizer))) {
        throw UsageError(option->get_name() +
                         " has no effect without --tokenize ja-mecab or ko-mecab.");
      }
    }
    a->check();
    job = [=] { run(*a); };
  });
}

}  // namespace nunchi::cli
