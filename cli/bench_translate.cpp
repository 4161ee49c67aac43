#include <fmt/format.h>

#include <memory>

#include "cli/bench.h"
#include "cli/input_output.h"
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

std::vector<std::string> read_lines(const std::string& path, std::int64_t max_lines) {
  std::vector<std::string> lines;
  LineReader reader(input_path(path));
  for (std::string line;
       static_cast<std::int64_t>(lines.size()) < max_lines && reader.next(line);) {
    lines.push_back(line);
  }
  return lines;
}

benchmark::TranslateBenchResult measure(ContextBase& context, const Arguments& arguments) {
  benchmark::TranslateBenchOptions options = arguments.options;
  if (!arguments.folder.empty()) {
    if (arguments.input.empty())
      throw UsageError("MODEL needs --input, a file of lines to translate.");
    return measure_translation(context, benchmark::FolderBenchOptions{
                                            .folder = arguments.folder,
                                            .lines = read_lines(arguments.input, options.sentences),
                                            .batch = options.batch,
                                            .beam_size = arguments.beam_size,
                                            .rounds = options.rounds,
                                            .profile = options.profile});
  }
  options.model = model_preset(arguments.preset)
                      ->with_input_sizes({arguments.vocabulary, arguments.vocabulary});
  if (arguments.beam_size > 0) options.beam_size = arguments.beam_size;
  return measure_translation(context, options);
}

void run(const BenchOptions& common, const Arguments& arguments) {
  const benchmark::Limits limits = benchmark::measure_limits(common.device);
  const std::unique_ptr<ContextBase> context = make_context(common.device);
  if (!common.json) print_machine(*context, limits);
  const benchmark::TranslateBenchResult r = measure(*context, arguments);
  const double rate = static_cast<double>(r.tokens) / r.seconds;
  const double ms_per_sentence = 1e3 * r.seconds / static_cast<double>(r.sentences);
  if (!common.json) {
    fmt::print("{} sentences, {} tokens: {:.1f} tokens/s, {:.2f} ms a sentence\n", r.sentences,
               r.tokens, rate, ms_per_sentence);
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
               {"ms_per_sentence", ms_per_sentence},
               {"first_sentence_ms", 1e3 * r.first_sentence_seconds}};
  add_machine(json, *context, limits);
  fmt::print("{}\n", json.dump());
}

}  // namespace

void add_bench_translate(CLI::App& bench, Job& job) {
  CLI::App* translate =
      add_command(bench, "translate",
                  "Time translation\n\nWith a preset, weights and sentences are random and "
                  "lengths fixed; with MODEL, the lines of --input are translated.")
          ->group(kBenchmarks);
  auto common = std::make_shared<BenchOptions>();
  auto arguments = std::make_shared<Arguments>();
  benchmark::TranslateBenchOptions& options = arguments->options;
  constexpr std::int64_t kMaxCount = 1 << 20;
  OptionGroup(*translate, kArguments)
      .add("MODEL", arguments->folder, model_folder(), "Model folder; needs --input");
  OptionGroup(*translate, "With MODEL")
      .add("-i,--input", arguments->input, input_file(), "Lines to translate");
  OptionGroup sizes(*translate, "Without MODEL");
  sizes.add("--preset", arguments->preset, one_of({"tiny", "base", "big"}), "Shape of the model");
  sizes.add("--source-length", options.source_length, whole_number(1, kMaxCount),
            "Source tokens per sentence");
  sizes.add("--target-length", options.target_length, whole_number(1, kMaxCount),
            "Target tokens per sentence");
  sizes.add("--vocab", arguments->vocabulary, whole_number(5, kMaxCount), "Size of the vocabulary");
  OptionGroup measurement(*translate, kMeasurement);
  measurement.add("--sentences", options.sentences, whole_number(1, kMaxCount),
                  "Sentences per round; with MODEL, the maximum number of lines");
  measurement.add("--batch", options.batch, whole_number(1, kMaxCount), "Sentences per batch");
  measurement
      .add("--beam-size", arguments->beam_size, whole_number(1, 4096),
           "Hypotheses to keep for each sentence; 1 is greedy search")
      ->default_str(fmt::format("the model's, or {}", options.beam_size));
  measurement.add("--rounds", options.rounds, whole_number(1, kMaxCount), "Timed rounds");
  measurement.flag("--profile", options.profile, "Print the time of each kernel");
  common->add_to(*translate);
  add_examples(*translate,
               {"nunchi bench translate --preset base --batch 32 --beam-size 4",
                "nunchi bench translate runs/demo -i runs/demo/data/held-out.ko --json"});
  translate->callback([=, &job] { job = [=] { run(*common, *arguments); }; });
}

}  // namespace nunchi::cli
