#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/device_options.h"
#include "cli/option_group.h"
#include "cli/progress_line.h"
#include "cli/stop_signals.h"
#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"
#include "nunchi/demo/demo.h"
#include "nunchi/text/unicode.h"
#include "nunchi/views/attention_picture.h"

namespace nunchi::cli {
namespace {

struct Arguments {
  DemoOptions options;
  ContextOptions device;
  bool json = false;
};

void print_translations(const DemoResult& result) {
  constexpr std::size_t kMaxCorrect = 6;
  fmt::print("\nSome of the held-out sentences:\n\n");
  // The first correct translations and, if there is one, a wrong translation.
  std::vector<const DemoTranslation*> shown;
  for (const DemoTranslation& one : result.translations) {
    if (shown.size() < kMaxCorrect && one.exact()) shown.push_back(&one);
  }
  for (const DemoTranslation& one : result.translations) {
    if (!one.exact()) {
      shown.push_back(&one);
      break;
    }
  }
  for (const DemoTranslation* one : shown) {
    fmt::print("  Korean     {}\n  Nunchi     {}\n", one->pair.korean, one->translation);
    fmt::print("  reference  {}{}\n\n", one->pair.english, one->exact() ? "" : "   <- differs");
  }
}

// "layer 2, head 1; layer 3, head 1 + 4": counted from 1, as people do.
std::string names_of(const AlignmentHeads& heads) {
  std::string names;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const bool same_layer = i > 0 && heads[i - 1].layer == heads[i].layer;
    if (!same_layer)
      names += fmt::format("{}layer {}, head ", i > 0 ? "; " : "", heads[i].layer + 1);
    names += fmt::format("{}{}", same_layer ? " + " : "", heads[i].head + 1);
  }
  return names;
}

void print_attention(const DemoResult& result) {
  fmt::print(
      "Right source words: {:.1f}% of {} content words of the held-out sentences give their "
      "largest "
      "largest attention weight to a word that they translate ({}).\n\n",
      100 * result.alignment.accuracy(), grouped(result.alignment.words),
      names_of(result.alignment_heads));
  if (result.attention.weights.empty()) return;
  const bool color = ::isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  fmt::print("Cross-attention of each English word in one of them:\n\n{}\n",
             attention_picture(result.attention, {.color = color}));
}

void print_next_commands(const Arguments& arguments) {
  const std::string folder = arguments.options.output.string();
  fmt::print(
      "Try next:\n"
      "  echo '2027년 3월 5일 금요일 오전 10시 30분에 부산에서 만나요' | build/nunchi translate "
      "{0}\n"
      "  build/nunchi translate {0} --input {0}/data/held-out.ko --beam-size 4 --n-best 2\n"
      "  build/nunchi info {0}\n"
      "  build/nunchi train configs/multi30k-tiny.yaml --set data.root=FOLDER   "
      "(a model on real text: docs/multi30k.md)\n",
      folder);
}

void run(const Arguments& arguments) {
  const std::unique_ptr<ContextBase> context = make_context(arguments.device);
  ProgressLine line;
  const StopSignals signals;
  DemoHooks hooks{
      .note = [&](const std::string& message) { line.print(message); },
      .progress = [&](const TrainingProgress& p) { line.update(training_line(p, line.columns())); },
      .stop = &signals.requested()};
  const std::optional<DemoResult> result = run_demo(*context, arguments.options, hooks);
  if (!result) throw Error("stopped before the end; run the same command to start again.");
  fmt::print(
      "Exact matches: {:.1f}% of {} held-out sentences. BLEU {:.2f}. {:.0f} seconds in total.\n",
      100 * result->exact_match, result->translations.size(), result->bleu, result->seconds);
  print_translations(*result);
  print_attention(*result);
  print_next_commands(arguments);
  if (!arguments.json) return;
  const nlohmann::ordered_json json = {{"exact_match", result->exact_match},
                                       {"bleu", result->bleu},
                                       {"alignment_accuracy", result->alignment.accuracy()},
                                       {"alignment_words", result->alignment.words},
                                       {"seconds", result->seconds},
                                       {"model", arguments.options.output.string()},
                                       {"seed", arguments.options.seed}};
  fmt::print("{}\n", json.dump());
}

}  // namespace

void add_demo(CLI::App& program, Job& job) {
  CLI::App* demo =
      add_command(program, "demo",
                  "Train and try a Korean-English model in two minutes\n\n"
                  "Generates sentences, learns a tokenizer, trains a small Transformer and "
                  "translates sentences that it has not seen.")
          ->group(kStart);
  auto arguments = std::make_shared<Arguments>();
  OptionGroup run_options(*demo, "Run");
  run_options.add("--seed", arguments->options.seed, seed(),
                  "Random seed for sentences and weights");
  run_options.add("-o,--output", arguments->options.output, text("FOLDER", "a folder"),
                  "Where to write the model");
  run_options.add("--steps", arguments->options.steps, whole_number(1, 1 << 20), "Training steps");
  run_options.add("--checkpoints", arguments->options.checkpoints, whole_number(1, 100),
                  "Checkpoints to keep, for nunchi inspect --checkpoints");
  add_json(*demo, arguments->json, "Print one JSON object as the last line");
  add_device_options(*demo, arguments->device);
  add_examples(*demo, {"nunchi demo", "nunchi demo --seed 7 --output runs/demo-7 --json"});
  demo->callback([=, &job] { job = [=] { run(*arguments); }; });
}

}  // namespace nunchi::cli
