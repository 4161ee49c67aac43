#include <fmt/format.h>

#include <memory>

#include "cli/bench.h"
#include "nunchi/base/error.h"
#include "nunchi/benchmark/translate.h"
#include "nunchi/data/lines.h"

namespace nunchi::cli {
namespace {

struct Arguments {
  std::string folder, input, preset = "base";
  std::int64_t vocabulary = 32000;
  int beam_size = 0;
  benchmark::TranslateBenchOptions options;
};

std::vector<std::string> lines_of(const std::string& path, std::int64_t most) {
  std::vector<std::string> lines;
  LineReader reader(path);
  for (std::string line; static_cast<std::int64_t>(lines.size()) < most && reader.next(line);) {
    lines.push_back(line);
  }
  return lines;
}

benchmark::TranslateBenchResult measure(ContextBase& context, const Arguments& arguments) {
  benchmark::TranslateBenchOptions options = arguments.options;
  if (!arguments.folder.empty()) {
    if (arguments.input.empty()) throw UsageError("a model folder needs --input, a file of lines.");
    return measure_translation(context, benchmark::FolderBenchOptions{
                                            .folder = arguments.folder,
                                            .lines = lines_of(arguments.input, options.sentences),
                                            .batch = options.batch,
                                            .beam_size = arguments.beam_size,
                                            .rounds = options.rounds,
                                            .profile = options.profile});
  }
  options.model = TransformerConfig::preset(arguments.preset, arguments.vocabulary);
  if (arguments.beam_size > 0) options.beam_size = arguments.beam_size;
  return measure_translation(context, options);
}

void run(const BenchOptions& common, const Arguments& arguments) {
  const benchmark::Limits limits = benchmark::measure_limits(common.device);
  const std::unique_ptr<ContextBase> context = make_context(common.device);
  if (!common.json) print_machine(*context, limits);
  const benchmark::TranslateBenchResult r = measure(*context, arguments);
  const double rate = static_cast<double>(r.tokens) / r.seconds;
  const double each = 1e3 * r.seconds / static_cast<double>(r.sentences);
  if (!common.json) {
    fmt::print("{} sentences, {} tokens: {:.1f} tokens/s, {:.2f} ms a sentence\n", r.sentences,
               r.tokens, rate, each);
    fmt::print("first sentence after {:.0f} ms, peak memory {:.0f} MiB\n",
               1e3 * r.first_sentence_seconds, context->peak_memory_mib());
    if (arguments.options.profile) print_profile(r.profile, limits, {r.rounds, r.seconds, "round"});
    return;
  }
  const benchmark::TranslateBenchOptions& o = arguments.options;
  Json json = {{"model", arguments.folder.empty() ? arguments.preset : arguments.folder},
               {"sentences", r.sentences},
               {"batch", o.batch},
               {"beam_size", arguments.beam_size > 0 ? arguments.beam_size : o.beam_size},
               {"tokens", r.tokens},
               {"tokens_per_s", rate},
               {"ms_per_sentence", each},
               {"first_sentence_ms", 1e3 * r.first_sentence_seconds}};
  add_machine(json, *context, limits);
  fmt::print("{}\n", json.dump());
}

}  // namespace

void add_bench_translate(CLI::App& bench) {
  CLI::App* translate = bench.add_subcommand(
      "translate", "Translation: random weights at fixed lengths, or a model folder on real lines");
  auto common = std::make_shared<BenchOptions>();
  auto arguments = std::make_shared<Arguments>();
  benchmark::TranslateBenchOptions& options = arguments->options;
  common->add_to(*translate);
  translate->add_option("MODEL", arguments->folder, "Model folder, with --input");
  translate->add_option("--input", arguments->input, "Lines to translate");
  translate->add_option("--preset", arguments->preset, "tiny, base or big, with random weights")
      ->check(CLI::IsMember({"tiny", "base", "big"}))
      ->capture_default_str();
  const auto count = [&](const std::string& name, auto& field, const std::string& what, int low) {
    translate->add_option(name, field, what)
        ->check(CLI::Range(low, 1 << 20))
        ->capture_default_str();
  };
  count("--sentences", options.sentences, "Sentences a round (of --input: at most)", 1);
  count("--batch", options.batch, "Sentences at once", 1);
  count("--source-length", options.source_length, "Source tokens a sentence", 1);
  count("--target-length", options.target_length, "Target tokens a sentence", 1);
  count("--vocab", arguments->vocabulary, "Vocabulary", 5);
  count("--rounds", options.rounds, "Timed rounds", 1);
  translate->add_option("--beam-size", arguments->beam_size, "Hypotheses to keep; 1 is greedy")
      ->check(CLI::Range(1, 4096));
  translate->add_flag("--profile", options.profile, "Show where the time goes");
  translate->callback([=] { run(*common, *arguments); });
}

}  // namespace nunchi::cli
