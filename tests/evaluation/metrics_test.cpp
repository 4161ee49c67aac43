// BLEU, chrF, TER and the bootstrap compared with sacreBLEU on the same texts (make_expected.py).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "nunchi/base/error.h"
#include "nunchi/evaluation/bleu.h"
#include "nunchi/evaluation/bootstrap.h"
#include "nunchi/evaluation/chrf.h"
#include "nunchi/evaluation/metric.h"
#include "nunchi/evaluation/perplexity.h"
#include "tests/paths.h"
#include "tests/support.h"

namespace nunchi::evaluation {
namespace {

using Json = nlohmann::json;

const std::string kFolder = NUNCHI_SOURCE_DIR "/tests/evaluation/";

const Json& expected() {
  static const Json json = Json::parse(std::ifstream(kFolder + "expected.json"));
  return json;
}

// Reads a file independently of the code under test.
Lines fixture(const std::string& name) {
  std::ifstream file(kFolder + "fixtures/" + name, std::ios::binary);
  Lines lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// The files of a case.
struct Texts {
  explicit Texts(const Json& json) : hypotheses(fixture(json.at("hypotheses"))) {
    for (const std::string name : json.at("references")) references.push_back(fixture(name));
  }

  Lines hypotheses;
  std::vector<Lines> references;
};

// The last bits of exp and log may differ between C libraries.
void expect_same(double ours, const Json& theirs) { EXPECT_DOUBLE_EQ(ours, theirs.get<double>()); }

void expect_sentences(const Texts& texts, const std::string& metric, const Json& wanted) {
  const std::vector<double> scores =
      sentence_scores(make_metric(metric,
                                  {.tokenizer = wanted.value("tokenize", "13a"),
                                   .lowercase = wanted.at("lowercase"),
                                   .sentence = true},
                                  texts.references),
                      texts.hypotheses);
  ASSERT_EQ(wanted.at("sentences").size(), scores.size());
  for (std::size_t line = 0; line < scores.size(); ++line) {
    SCOPED_TRACE(metric + ", line " + std::to_string(line + 1));
    expect_same(scores[line], wanted.at("sentences").at(line));
  }
}

TEST(ExpectedScores, HaveTheVersionOfTheSignatures) {
  EXPECT_EQ(expected().at("sacrebleu").get<std::string>(), kSacreBleuVersion);
  EXPECT_GE(expected().at("cases").size(), 10u);
}

TEST(Bleu, EqualsSacreBleu) {
  for (const Json& given : expected().at("cases")) {
    const Texts texts(given);
    for (const Json& wanted : given.at("bleu")) {
      SCOPED_TRACE(given.at("name").get<std::string>() + ", " +
                   wanted.at("signature").get<std::string>());
      const BleuOptions options{
          .tokenizer = bleu_tokenizer_of(wanted.at("tokenize").get<std::string>()),
          .lowercase = wanted.at("lowercase")};
      const BleuScore score = corpus_bleu(texts.hypotheses, texts.references, options);
      expect_same(score.score, wanted.at("score"));
      expect_same(score.brevity_penalty, wanted.at("brevity_penalty"));
      expect_same(score.ratio, wanted.at("ratio"));
      for (std::size_t n = 0; n < kBleuOrder; ++n) {
        expect_same(score.precisions[n], wanted.at("precisions").at(n));
      }
      EXPECT_EQ(Json(score.matched), wanted.at("counts"));
      EXPECT_EQ(Json(score.total), wanted.at("totals"));
      EXPECT_EQ(score.hypothesis_length, wanted.at("hypothesis_length"));
      EXPECT_EQ(score.reference_length, wanted.at("reference_length"));
      EXPECT_EQ(score.details(), wanted.at("details").get<std::string>());
      EXPECT_EQ(signature(options, {.references = texts.references.size()}),
                wanted.at("signature").get<std::string>());
    }
  }
}

TEST(Bleu, EqualsSacreBleuLineByLine) {
  for (const Json& given : expected().at("cases")) {
    const Texts texts(given);
    for (const Json& wanted : given.at("bleu")) {
      BleuOptions options{.tokenizer = bleu_tokenizer_of(wanted.at("tokenize").get<std::string>()),
                          .lowercase = wanted.at("lowercase")};
      expect_sentences(texts, "bleu", wanted);
      options.effective_order = true;
      EXPECT_EQ(signature(options, {.references = texts.references.size()}),
                wanted.at("sentence_signature").get<std::string>());
    }
  }
}

TEST(Chrf, EqualsSacreBleu) {
  for (const Json& given : expected().at("cases")) {
    const Texts texts(given);
    for (const Json& wanted : given.at("chrf")) {
      SCOPED_TRACE(given.at("name").get<std::string>() + ", " +
                   wanted.at("signature").get<std::string>());
      const ChrfOptions options{.word_order = wanted.at("word_order"),
                                .lowercase = wanted.at("lowercase")};
      EXPECT_EQ(name_of(options), wanted.at("name").get<std::string>());
      EXPECT_EQ(signature(options, {.references = texts.references.size()}),
                wanted.at("signature").get<std::string>());
      expect_same(corpus_chrf(texts.hypotheses, texts.references, options), wanted.at("score"));
      expect_sentences(texts, options.word_order > 0 ? "chrf++" : "chrf", wanted);
    }
  }
}

// The lengths of three references are no multiples of 1/2: their sum depends on how it is rounded.
TEST(Ter, EqualsSacreBleu) {
  for (const Json& given : expected().at("cases")) {
    const Texts texts(given);
    for (const Json& wanted : given.at("ter")) {
      SCOPED_TRACE(given.at("name").get<std::string>() + ", " +
                   wanted.at("signature").get<std::string>());
      const TerOptions options{.tokenizer = {.normalized = wanted.at("normalized"),
                                             .no_punctuation = wanted.at("no_punct"),
                                             .asian_support = wanted.at("asian_support")},
                               .case_sensitive = wanted.at("case_sensitive")};
      EXPECT_EQ(signature(options, {.references = texts.references.size()}),
                wanted.at("signature").get<std::string>());
      const TerScore score = corpus_ter(texts.hypotheses, texts.references, options);
      EXPECT_EQ(score.score, wanted.at("score").get<double>());
      EXPECT_EQ(score.edits, wanted.at("edits").get<std::int64_t>());
      EXPECT_EQ(score.reference_length, wanted.at("reference_length").get<double>());
      const Metric metric = make_metric("ter", {.ter = options}, texts.references);
      EXPECT_EQ(evaluate(metric, texts.hypotheses, {}, std::nullopt).score, score.score);
      EXPECT_EQ(Json(sentence_scores(metric, texts.hypotheses)), wanted.at("sentences"));
    }
  }
}

TEST(Bleu, OrdersWithoutAMatchCountAsHalfAMatchThenAQuarter) {
  const Lines hypothesis{"a b x c d"}, reference{"a b y c z d"};
  const BleuScore score = corpus_bleu(hypothesis, reference);
  EXPECT_EQ(score.matched, (std::array<std::int64_t, 4>{4, 1, 0, 0}));
  EXPECT_DOUBLE_EQ(score.precisions[2], 100.0 / (2 * 3));
  EXPECT_DOUBLE_EQ(score.precisions[3], 100.0 / (4 * 2));
}

TEST(Bleu, UsesTheShorterOfTwoEquallyCloseReferences) {
  const Lines hypothesis{"a b c d"};
  for (const auto& references : {std::vector<Lines>{{"a b c d e"}, {"a b c"}},
                                 std::vector<Lines>{{"a b c"}, {"a b c d e"}}}) {
    EXPECT_EQ(corpus_bleu(hypothesis, references).reference_length, 3);
  }
}

TEST(Bleu, KnowsItsTokenizersByName) {
  for (const std::string& name : bleu_tokenizer_names()) {
    EXPECT_EQ(name_of(bleu_tokenizer_of(name)), name);
  }
  EXPECT_THROW(bleu_tokenizer_of("14"), UsageError);
}

TEST(CorpusScores, InvalidBytesCountAsReplacementCharacters) {
  const Lines broken{
      "a\xFF"
      "b \xE2\x82 c"},
      repaired{"a\uFFFDb \uFFFD c"};
  EXPECT_DOUBLE_EQ(corpus_bleu(broken, repaired, {.effective_order = true}).score, 100);
  EXPECT_DOUBLE_EQ(corpus_chrf(repaired, broken), 100);
}

TEST(CorpusScores, RefuseTextsOfDifferentSizes) {
  const Lines two{"a", "b"}, one{"a"};
  EXPECT_THROW(corpus_bleu(Lines{}, Lines{}), Error);
  EXPECT_THROW(corpus_bleu(two, std::vector<Lines>{}), Error);
  EXPECT_THROW(corpus_bleu(two, std::vector{two, one}), Error);
  EXPECT_THROW(corpus_chrf(one, two), Error);
  EXPECT_THROW(corpus_chrf(one, one, {.character_order = 0}), UsageError);
}

TEST(BootstrapEstimate, EqualsSacreBleus) {
  for (const Json& wanted : expected().at("estimates")) {
    const std::vector<double> system = wanted.at("system"), baseline = wanted.at("baseline");
    const Estimate found = estimate(system);
    EXPECT_NEAR(found.mean, wanted.at("mean").get<double>(), 1e-12);
    expect_same(found.half_width, wanted.at("interval"));
    expect_same(paired_p_value(system, baseline, wanted.at("difference")), wanted.at("p_value"));
  }
}

// The draws differ from NumPy's, so results differ as if the seeds were different.
TEST(Bootstrap, AgreesWithSacreBleuUpToTheRandomDraws) {
  const Lines system = fixture("english.hyp"), baseline = fixture("english.ref0");
  const std::vector<Lines> references{fixture("english.ref1"), fixture("english.ref2")};
  const auto check = [](const Json& wanted, const PairedEstimate& found) {
    const auto near = [](const Json& theirs, const Estimate& ours) {
      const double interval = theirs.at("interval");
      EXPECT_NEAR(ours.mean, theirs.at("mean").get<double>(), 0.1 * interval);
      EXPECT_NEAR(ours.half_width, interval, 0.15 * interval);
    };
    near(wanted.at("system"), found.system);
    near(wanted.at("baseline"), found.baseline);
    EXPECT_NEAR(found.p_value, wanted.at("p_value").get<double>(), 0.05);
  };
  check(expected().at("paired").at("bleu"),
        paired_bootstrap(bleu_statistics(system, references, {}),
                         bleu_statistics(baseline, references, {}),
                         [](auto sums) { return bleu_of(sums, {}).score; }, {}));
  check(expected().at("paired").at("chrf"),
        paired_bootstrap(chrf_statistics(system, references, {}),
                         chrf_statistics(baseline, references, {}),
                         [](auto sums) { return chrf_of(sums, {}); }, {}));
}

// How often each line was drawn, [resamples, lines]: line i of the statistics counts itself.
std::vector<std::int64_t> draw_counts(std::size_t lines, const BootstrapOptions& options) {
  Statistics statistics(lines, lines);
  for (std::size_t line = 0; line < lines; ++line) statistics.line(line)[line] = 1;
  std::vector<std::int64_t> counts;
  resampled_scores(
      statistics,
      [&](std::span<const std::int64_t> sums) {
        EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), std::int64_t{0}),
                  static_cast<std::int64_t>(lines));
        counts.insert(counts.end(), sums.begin(), sums.end());
        return 0.0;
      },
      options);
  return counts;
}

TEST(Bootstrap, DrawsAllLinesEquallyOften) {
  constexpr std::size_t kLines = 10, kResamples = 2000;
  const auto counts = draw_counts(kLines, {.resamples = kResamples, .seed = 3});
  for (std::size_t line = 0; line < kLines; ++line) {
    double sum = 0, squares = 0;
    for (std::size_t i = line; i < counts.size(); i += kLines) {
      sum += static_cast<double>(counts[i]);
      squares += static_cast<double>(counts[i] * counts[i]);
    }
    const double mean = sum / kResamples;
    EXPECT_NEAR(mean, 1, 5 * std::sqrt(0.9 / kResamples));  // binomial: variance 1 - 1 / lines
    EXPECT_NEAR(squares / kResamples - mean * mean, 0.9, 0.15);
  }
}

TEST(Bootstrap, TheSeedDeterminesTheDraws) {
  const auto first = draw_counts(7, {.resamples = 5, .seed = 1});
  EXPECT_EQ(first, draw_counts(7, {.resamples = 5, .seed = 1}));
  EXPECT_NE(first, draw_counts(7, {.resamples = 5, .seed = 2}));
}

TEST(Bootstrap, ASystemDoesNotDifferFromItself) {
  const Lines lines = fixture("german.hyp");
  const Statistics statistics =
      bleu_statistics(lines, std::vector<Lines>{fixture("german.ref")}, {});
  const auto score_of = [](auto sums) { return bleu_of(sums, {}).score; };
  const PairedEstimate found =
      paired_bootstrap(statistics, statistics, score_of, {.resamples = 99});
  EXPECT_EQ(found.system.mean, found.baseline.mean);
  // No resample's difference exceeds zero: only the real one counts, as in sacreBLEU.
  EXPECT_DOUBLE_EQ(found.p_value, 0.01);
}

TEST(Evaluation, IdenticalSystemsHaveThePValueOne) {
  const Lines lines = fixture("german.hyp");
  const std::vector<Lines> references{fixture("german.ref")};
  Lines other = lines;
  for (const std::string& key : metric_keys()) {
    const Metric metric = make_metric(key, {}, references);
    const MetricResult same = evaluate(metric, lines, lines, BootstrapOptions{.resamples = 99});
    EXPECT_TRUE(same.identical);
    EXPECT_EQ(same.p_value, 1);
    EXPECT_EQ(same.score, same.baseline_score);
    other[3] += " und mehr";
    const MetricResult differs = evaluate(metric, lines, other, BootstrapOptions{.resamples = 99});
    EXPECT_FALSE(differs.identical);
    EXPECT_LE(differs.p_value, 1);
  }
}

TEST(Bootstrap, RefusesInputThatCannotBeResampled) {
  const auto score_of = [](auto) { return 0.0; };
  const Statistics two(2, 1), three(3, 1);
  EXPECT_THROW(paired_bootstrap(two, three, score_of, {}), Error);
  EXPECT_THROW(resampled_scores(two, score_of, {.resamples = 0}), UsageError);
  EXPECT_THROW(resampled_scores(Statistics(0, 1), score_of, {}), Error);
}

TEST(ScoreSignature, NamesTheBootstrap) {
  const Setting setting{.references = 2,
                        .bootstrap = BootstrapOptions{.resamples = 500, .seed = 9}};
  EXPECT_EQ(signature(BleuOptions{}, setting),
            "nrefs:2|bs:500|seed:9|case:mixed|eff:no|tok:13a|smooth:exp|version:" +
                std::string(kSacreBleuVersion));
}

TEST(Perplexity, IsTheNumberOfEquallyLikelyWords) {
  EXPECT_DOUBLE_EQ(perplexity(12 * std::log(50.0), 12), 50);
}

}  // namespace
}  // namespace nunchi::evaluation
