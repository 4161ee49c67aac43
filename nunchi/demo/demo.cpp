#include "nunchi/demo/demo.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "nunchi/base/atomic_file.h"
#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"
#include "nunchi/base/interrupted.h"
#include "nunchi/decoding/generation_config.h"
#include "nunchi/evaluation/bleu.h"
#include "nunchi/inference/model_folder.h"
#include "nunchi/inference/translator.h"
#include "nunchi/models/families/transformer_config.h"

namespace nunchi {
namespace {

void write_lines(const std::filesystem::path& path, std::span<const DemoPair> pairs,
                 std::string DemoPair::*side) {
  std::string text;
  for (const DemoPair& pair : pairs) text += pair.*side + "\n";
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

// The pairs of all the demo's files.
struct DemoFiles {
  std::vector<DemoPair> training, validation, held_out;
};

DemoFiles make_files(const DemoOptions& options) {
  DemoData data =
      make_demo_data(options.seed, options.training, options.held_out + options.validation);
  DemoFiles files{.training = std::move(data.training), .held_out = std::move(data.held_out)};
  const auto first_of_validation = files.held_out.begin() + options.held_out;
  files.validation.assign(first_of_validation, files.held_out.end());
  files.held_out.erase(first_of_validation, files.held_out.end());
  return files;
}

void write_sentences(const DemoFiles& data, const std::filesystem::path& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) throw Error("cannot make the folder " + folder.string() + ": " + failure.message());
  write_lines(folder / "train.ko", data.training, &DemoPair::korean);
  write_lines(folder / "train.en", data.training, &DemoPair::english);
  write_lines(folder / "validation.ko", data.validation, &DemoPair::korean);
  write_lines(folder / "validation.en", data.validation, &DemoPair::english);
  write_lines(folder / "held-out.ko", data.held_out, &DemoPair::korean);
  write_lines(folder / "held-out.en", data.held_out, &DemoPair::english);
}

// The first file that a demo writes: it marks the folder as a demo's, complete or not.
constexpr const char* kMarker = "demo.json";
constexpr const char* kData = "data";  // the folder of the sentences

// Throws UsageError for a folder with files that are not the demo's.
void check_output(const std::filesystem::path& output) {
  std::error_code failure;
  if (std::filesystem::exists(output / kMarker, failure)) return;
  const bool is_old_demo = std::filesystem::exists(output / kData / "held-out.ko", failure) &&
                           std::filesystem::exists(output / "run.json", failure);
  if (is_old_demo) return;  // earlier versions wrote no marker
  if (RunFolder::foreign_entry(output).empty()) return;
  throw UsageError(
      "'" + output.string() +
      "' contains files that the demo did not write. Choose another folder with --output.");
}

void write_marker(const DemoOptions& options) {
  const std::string text = fmt::format("{{\"seed\":{}}}\n", options.seed);
  AtomicFile file(options.output / kMarker);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

double bleu_of(std::span<const DemoTranslation> translations) {
  std::vector<std::string> hypotheses, references;
  for (const DemoTranslation& one : translations) {
    hypotheses.push_back(one.translation);
    references.push_back(one.pair.english);
  }
  return evaluation::corpus_bleu(hypotheses, references, {}).score;
}

// A correct translation for the attention picture: the longest one that fits in a terminal, since
// word order differs most in long sentences.
const DemoTranslation* sentence_to_show(std::span<const DemoTranslation> translations) {
  constexpr std::size_t kMinLength = 40, kMaxLength = 70;  // English characters
  const DemoTranslation* best = nullptr;
  for (const DemoTranslation& one : translations) {
    const std::size_t length = one.pair.english.size();
    if (!one.exact() || length < kMinLength || length > kMaxLength) continue;
    if (best == nullptr || length > best->pair.english.size()) best = &one;
  }
  return best;
}

std::vector<LinkedPair> linked_pairs(std::span<const DemoPair> pairs) {
  std::vector<LinkedPair> linked;
  for (const DemoPair& pair : pairs) linked.push_back({pair.korean, pair.english, pair.links});
  return linked;
}

// Chooses the heads on the pairs for validation, so that the held-out ones only count.
void align(ContextBase& context, const ModelFolder& trained, const DemoFiles& data,
           DemoResult& result) {
  const auto attention = [&](std::span<const DemoPair> pairs) {
    return LinkedAttention(context, trained.model(), trained.tokenizers(), linked_pairs(pairs));
  };
  result.alignment_heads = attention(data.validation).best_heads();
  result.alignment = attention(data.held_out).count(result.alignment_heads);
}

}  // namespace

TrainConfig demo_config(const DemoOptions& options) {
  TrainConfig config;
  config.output = options.output;
  config.seed = options.seed;
  TransformerConfig model;
  model.encoder_layers = model.decoder_layers = 3;
  model.width = 128;
  model.heads = 4;
  model.feed_forward = 512;
  model.norm_placement = nn::NormPlacement::pre;
  model.dropout = 0;  // each sentence is seen once, so there is no overfitting
  config.model = model;
  TokenizerOptions& tokenizer = config.tokenizer.options;
  tokenizer.kind = TokenizerKind::unigram;
  tokenizer.vocabulary = 1400;
  tokenizer.byte_fallback = false;
  tokenizer.split_digits = true;
  config.data.root = options.output / kData;
  config.data.train = {{.source = "train.ko", .target = "train.en"}};
  config.data.validation = {.source = "validation.ko", .target = "validation.en"};
  TrainingOptions& training = config.training;
  training.batch_tokens = 512;
  training.batch_by = BatchBy::random;  // sorting by length would sort by template
  training.label_smoothing = 0;
  training.schedule = {.kind = ScheduleKind::cosine,
                       .peak = 2e-3,
                       .warmup = std::max<std::int64_t>(1, options.steps / 12)};
  training.max_steps = options.steps;
  config.checkpoints = {.every = std::max<std::int64_t>(1, options.steps / options.checkpoints),
                        .keep_last = options.checkpoints,
                        .keep_best = 1,
                        .average = 1};
  config.validation = {.every = 0, .metric = ValidationMetric::loss};
  config.generation = {.beam_size = 1};
  return config;
}

std::optional<DemoResult> run_demo(ContextBase& context, const DemoOptions& options,
                                   const DemoHooks& hooks) try {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const TrainConfig config = demo_config(options);
  check_output(options.output);
  const std::vector<std::string> demo_files = {kMarker, kData};
  RunFolder folder(options.output, RunFolder::StartMode::overwrite, demo_files);
  write_marker(options);
  const DemoFiles data = make_files(options);
  write_sentences(data, options.output / kData);
  hooks.note(fmt::format(
      "{} Korean sentences with their translations, of {} possible ones; {} more are held out",
      grouped(options.training),
      grouped(static_cast<std::int64_t>(DemoGenerator::possible_sentences())),
      grouped(options.held_out)));

  TrainingRun run(context, config,
                  {.cache = config.cache(), .note = hooks.note, .stop = hooks.stop});
  hooks.note(fmt::format("training a Transformer of {} parameters",
                         grouped(run.model().parameters().count())));
  TrainerHooks trainer_hooks;
  trainer_hooks.progress = hooks.progress;
  trainer_hooks.note = hooks.note;
  trainer_hooks.stop = hooks.stop;
  if (run.train(&folder, trainer_hooks) == TrainingEnd::interrupted) return std::nullopt;

  // Evaluates the model folder as a user would load it, not the model in memory.
  const ModelFolder trained(context, options.output, as_translation_model);
  hooks.note(fmt::format("translating {} held-out sentences", grouped(options.held_out)));
  Translator translator(context, trained.model(), trained.tokenizers(),
                        {.search = trained.search()});
  std::vector<SourceLine> lines;
  for (const DemoPair& pair : data.held_out) lines.push_back({.text = pair.korean});
  const std::vector<Translations> translations = translator.translate(lines);
  DemoResult result;
  std::int64_t exact = 0;
  for (std::size_t i = 0; i < translations.size(); ++i) {
    result.translations.push_back({data.held_out[i], translations[i][0].text});
    exact += result.translations.back().exact() ? 1 : 0;
  }
  result.exact_match = static_cast<double>(exact) / static_cast<double>(translations.size());
  result.bleu = bleu_of(result.translations);
  align(context, trained, data, result);
  save_alignment_heads(result.alignment_heads, options.output);
  if (const DemoTranslation* shown = sentence_to_show(result.translations)) {
    Translator aligning(
        context, trained.model(), trained.tokenizers(),
        {.search = trained.search(), .alignment = true, .alignment_heads = result.alignment_heads});
    result.attention = merged_into_words(aligning.translate(shown->pair.korean).attention);
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return result;
} catch (const Interrupted&) {
  return std::nullopt;
}

}  // namespace nunchi
