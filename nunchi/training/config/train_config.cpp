#include "nunchi/training/config/train_config.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "nunchi/base/error.h"
#include "nunchi/base/key_hints.h"
#include "nunchi/base/yaml_options.h"
#include "nunchi/decoding/generation_config.h"
#include "nunchi/models/families/transformer_config.h"
#include "nunchi/models/format/folder.h"
#include "nunchi/training/config/key_aliases.h"
#include "nunchi/training/config/train_config_check.h"
#include "nunchi/training/config/train_config_used.h"
#include "nunchi/training/objectives/objectives.h"

namespace nunchi {
namespace {

constexpr std::int64_t kMaxCount = std::int64_t{1} << 40;  // of steps, epochs, lines
constexpr std::int64_t kMaxTokens = 1 << 24;

constexpr std::array kTokenizers = {
    Choice{"bpe", TokenizerKind::bpe}, Choice{"unigram", TokenizerKind::unigram},
    Choice{"characters", TokenizerKind::characters}, Choice{"bytes", TokenizerKind::bytes}};
constexpr std::array kBatchBy = {Choice{"length", BatchBy::length},
                                 Choice{"random", BatchBy::random}};
constexpr std::array kGradientSums = {Choice{"sequential", GradientSum::sequential},
                                      Choice{"tree", GradientSum::tree}};
constexpr std::array kTextCuts = {Choice{"lines", TextCut::lines},
                                  Choice{"windows", TextCut::windows}};
constexpr std::array kOptimizers = {Choice{"adam", OptimizerConfig::Kind::adam},
                                    Choice{"adamw", OptimizerConfig::Kind::adamw}};
constexpr std::array kSchedules = {
    Choice{"paper", ScheduleKind::paper}, Choice{"inverse_sqrt", ScheduleKind::inverse_sqrt},
    Choice{"cosine", ScheduleKind::cosine}, Choice{"linear", ScheduleKind::linear},
    Choice{"constant", ScheduleKind::constant}};

void visit_model_fields(OptionReader& in, ModelConfig& model) {
  model = read_training_model_config(in);
}
void visit_model_fields(OptionWriter& out, const ModelConfig& model) {
  model->write_training_options(out);
}

void visit_model_fields(KeyCollector& keys, const ModelConfig& model) {
  OptionWriter out;
  model->write_training_options(out);
  for (const OptionValue& option : out.tree().items) keys.text(option.key);
}

void visit_tokenizer_fields(auto& visitor, auto& tokenizer) {
  visitor.choice("kind", tokenizer.options.kind, kTokenizers);
  visitor.integer("vocabulary", tokenizer.options.vocabulary, 4, kMaxTokens);
  visitor.flag("shared", tokenizer.shared);
  visitor.flag("byte_fallback", tokenizer.options.byte_fallback);
  visitor.number("character_coverage", tokenizer.options.character_coverage, 0.98, 1);
  visitor.texts("symbols", tokenizer.options.symbols);
  visitor.flag("split_digits", tokenizer.options.split_digits);
  visitor.integer("max_lines", tokenizer.options.max_lines, 1, kMaxCount);
  visitor.path("source", tokenizer.source);
  visitor.path("target", tokenizer.target);
}

void visit_pair_fields(auto& visitor, auto& part) {
  visitor.path("source", part.source);
  visitor.path("features", part.features);
  visitor.path("target", part.target);
  visitor.path("tsv", part.tsv);
  visitor.path("text", part.text);
  visitor.integer("source_column", part.source_column, 1, 1000);
  visitor.integer("target_column", part.target_column, 1, 1000);
  visitor.integer("first_line", part.first_line, 1, kMaxCount);
  visitor.integer("last_line", part.last_line, 0, kMaxCount);
}

void visit_data_fields(auto& visitor, auto& data) {
  visitor.path("root", data.root);
  visitor.path("cache", data.cache);
  visitor.maps("train", data.train, [](auto& visitor, auto& part) {
    visit_pair_fields(visitor, part);
    visitor.positive("weight", part.weight);
  });
  visitor.map("validation", data.validation,
              [](auto& visitor, auto& part) { visit_pair_fields(visitor, part); });
  visitor.integer("max_length", data.limits.max_length, 1, kMaxTokens);
  visitor.number("max_ratio", data.limits.max_ratio, 0, 1e6);
  visitor.choice("cut", data.cut, kTextCuts);
  visitor.integer("window", data.window, 1, kMaxTokens);
}

void visit_optimizer_fields(auto& visitor, auto& optimizer) {
  visitor.choice("kind", optimizer.kind, kOptimizers);
  visitor.fraction("beta1", optimizer.adam.beta1);
  visitor.fraction("beta2", optimizer.adam.beta2);
  visitor.positive("epsilon", optimizer.adam.epsilon);
  visitor.fraction("weight_decay", optimizer.adam.weight_decay);
  visitor.number("clip_norm", optimizer.adam.max_norm, 0, 1e9);
}

void visit_schedule_fields(auto& visitor, auto& schedule) {
  visitor.choice("kind", schedule.kind, kSchedules);
  visitor.number("learning_rate", schedule.peak, 0, 1000);
  visitor.number("factor", schedule.factor, 0, 1000);
  visitor.integer("warmup", schedule.warmup, 0, kMaxCount);
  visitor.number("final", schedule.final, 0, 1000);
}

void visit_training_fields(auto& visitor, auto& training) {
  visitor.choice("objective", training.objective, objective_choices());
  visitor.integer_or("batch_tokens", training.batch_tokens, 1, kMaxTokens,
                     NamedNumber<std::int64_t>{"auto", kAutomatic});
  visitor.choice("batch_by", training.batch_by, kBatchBy);
  visitor.integer("accumulate", training.accumulate, 1, 1 << 16);
  visitor.choice("gradient_sum", training.gradient_sum, kGradientSums);
  visitor.fraction("label_smoothing", training.label_smoothing);
  visitor.map("span_corruption", [&](auto& visitor) {
    visitor.number("noise", training.span_corruption.noise, 0.001, 0.999);
    visitor.number("mean_span", training.span_corruption.mean_span, 1, 1000);
  });
  visitor.number("mask_share", training.mask_share, 0.001, 0.999);
  visitor.flag("whole_words", training.whole_words);
  visitor.map("optimizer",
              [&](auto& visitor) { visit_optimizer_fields(visitor, training.optimizer); });
  visitor.fraction("ema", training.ema);
  visitor.map("schedule",
              [&](auto& visitor) { visit_schedule_fields(visitor, training.schedule); });
  visitor.integer("max_steps", training.max_steps, 0, kMaxCount);
  visitor.integer("max_epochs", training.max_epochs, 0, kMaxCount);
  visitor.number("max_minutes", training.max_minutes, 0, 1e9);
  visitor.integer("log_every", training.log_every, 1, kMaxCount);
}

void visit_checkpoint_fields(auto& visitor, auto& checkpoints) {
  visitor.integer("every", checkpoints.every, 1, kMaxCount);
  visitor.integer("keep_last", checkpoints.keep_last, 1, 10000);
  visitor.integer("keep_best", checkpoints.keep_best, 1, 10000);
  visitor.integer("average", checkpoints.average, 1, 10000);
}

void visit_validation_fields(auto& visitor, auto& validation) {
  visitor.integer("every", validation.every, 0, kMaxCount);
  visitor.choice("metric", validation.metric, kValidationMetrics);
  visitor.flag("lowercase", validation.lowercase);
  visitor.integer("beam_size", validation.beam_size, 1, 1024);
  visitor.integer("patience", validation.patience, 0, kMaxCount);
}

void visit_generation_fields(auto& visitor, auto& generation) {
  visitor.integer("beam_size", generation.beam_size, 1, 1024);
  visitor.number("normalize", generation.normalize, 0, 10);
  visitor.integer("max_length", generation.max_length, 1, kMaxGenerationLength);
}

void visit_fields(auto& visitor, auto& config) {
  visitor.path("output", config.output);
  visitor.integer("seed", config.seed, 0, INT64_MAX);
  visitor.path("initialize_from", config.initialize_from);
  visitor.map("model", [&](auto& visitor) { visit_model_fields(visitor, config.model); });
  visitor.map("tokenizer",
              [&](auto& visitor) { visit_tokenizer_fields(visitor, config.tokenizer); });
  visitor.map("data", [&](auto& visitor) { visit_data_fields(visitor, config.data); });
  visitor.map("training", [&](auto& visitor) { visit_training_fields(visitor, config.training); });
  visitor.map("checkpoints",
              [&](auto& visitor) { visit_checkpoint_fields(visitor, config.checkpoints); });
  visitor.map("validation",
              [&](auto& visitor) { visit_validation_fields(visitor, config.validation); });
  visitor.map("generation",
              [&](auto& visitor) { visit_generation_fields(visitor, config.generation); });
}

// The keys of a Transformer's config, for suggestions.
KeyHints key_hints() {
  std::vector<std::string> all;
  // The writer of a model leaves out the keys of other positions.
  for (const nn::PositionKind position : {nn::PositionKind::sinusoidal, nn::PositionKind::learned,
                                          nn::PositionKind::rotary, nn::PositionKind::relative}) {
    TransformerConfig model;
    model.position = position;
    TrainConfig config;
    config.model = model;
    KeyCollector keys;
    visit_fields(keys, config);
    for (const std::string& key : keys.keys()) {
      if (std::ranges::find(all, key) == all.end()) all.push_back(key);
    }
  }
  return {std::move(all), train_config_aliases()};
}

// The model of the folder that the run starts from, for a config without a model.
ModelConfig initial_model(const TrainConfig& config, const OptionReader& in) {
  if (config.initialize_from.empty()) {
    in.fail("model", "is missing; it must have at least a 'family'");
  }
  try {
    return load_config(config.initialize_from);
  } catch (const Error& error) {
    std::string why = error.what();
    while (why.ends_with('.')) why.pop_back();
    in.fail("initialize_from", "names no model to take, and 'model' is missing: " + why);
  }
}

// The objective needs one of the symbols `needed`. Adds the first one to a tokenizer that will be
// learned, unless the config lists one of them.
void add_symbol(std::span<const std::string_view> needed, TrainConfig& config) {
  std::vector<std::string>& symbols = config.tokenizer.options.symbols;
  const auto is_needed = [&](const std::string& symbol) {
    return std::ranges::find(needed, symbol) != needed.end();
  };
  // Characters and bytes have no symbols: check_train_config refuses them.
  const bool can_add = config.learns_tokenizer() && config.tokenizer.is_subword();
  if (can_add && std::ranges::none_of(symbols, is_needed)) symbols.emplace_back(needed.front());
}

// Lowers the lengths that are not set in the config to those that the model can read.
void set_default_lengths(const std::function<bool(const char*)>& is_set, TrainConfig& config) {
  const std::int64_t model_limit = config.model->max_length();
  if (config.data.cut == TextCut::windows) {
    if (!is_set("data.window")) config.data.window = std::min(config.data.window, model_limit);
    return;
  }
  const ObjectiveInfo& objective = info_of(config.training.objective);
  std::int64_t& max_length = config.data.limits.max_length;
  while (!is_set("data.max_length") && max_length > 1 &&
         objective.examples.max_tokens(max_length, config.training) > model_limit) {
    --max_length;
  }
  if (objective.generates() && !is_set("generation.max_length")) {
    config.generation.max_length = std::min(config.generation.max_length, model_limit);
  }
}

// Sets the defaults that depend on the family and the objective. `is_set` tells whether the user
// has set a key.
void set_defaults(const std::function<bool(const char*)>& is_set, TrainConfig& config) {
  if (!is_set("training.objective")) config.training.objective = config.model->objective();
  const ObjectiveInfo& objective = info_of(config.training.objective);
  if (!is_set("training.label_smoothing")) {
    config.training.label_smoothing = objective.label_smoothing;
  }
  if (!is_set("data.cut")) config.data.cut = objective.examples.cut;
  if (objective.tokenizer.adds_symbol) add_symbol(objective.tokenizer.symbols, config);
  // Targets are labels here, so sorting by their length would group examples by label.
  if (!is_set("training.batch_by") && objective.examples.kind == Examples::labelled) {
    config.training.batch_by = BatchBy::random;
  }
  set_default_lengths(is_set, config);
  if (objective.translates()) return;
  if (!is_set("validation.metric")) config.validation.metric = ValidationMetric::loss;
  if (!is_set("generation.beam_size")) config.generation.beam_size = 1;
}

// The defaults, is_set the values in `config` of the options that other defaults depend on.
TrainConfig defaults_of(const TrainConfig& config) {
  TrainConfig defaults;
  defaults.initialize_from = config.initialize_from;
  defaults.model = config.model;
  defaults.tokenizer.options.kind = config.tokenizer.options.kind;
  defaults.tokenizer.source = config.tokenizer.source;
  defaults.training.objective = config.training.objective;
  set_defaults([](std::string_view key) { return key == "training.objective"; }, defaults);
  return defaults;
}

std::filesystem::path resolve(const std::filesystem::path& root,
                              const std::filesystem::path& path) {
  return path.empty() || root == "." ? path : root / path;
}

CorpusPart resolve(const std::filesystem::path& root, CorpusPart part) {
  part.source = resolve(root, part.source);
  part.features = resolve(root, part.features);
  part.target = resolve(root, part.target);
  part.tsv = resolve(root, part.tsv);
  part.text = resolve(root, part.text);
  return part;
}

}  // namespace

std::vector<CorpusPart> DataConfig::train_parts() const {
  std::vector<CorpusPart> parts;
  for (const CorpusPart& part : train) parts.push_back(resolve(root, part));
  return parts;
}

std::optional<CorpusPart> DataConfig::validation_part() const {
  return validation ? std::optional(resolve(root, *validation)) : std::nullopt;
}

std::int64_t source_tokens(const TrainingOptions& training) {
  const bool labelled = info_of(training.objective).examples.kind == Examples::labelled;
  return labelled ? training.batch_tokens : 0;
}

TrainConfig read_train_config(const Options& options) {
  OptionReader in(options, key_hints);
  TrainConfig config;
  visit_fields(in, config);
  in.finish();
  if (config.output.empty()) in.fail("output", "is missing; it names the folder of the run");
  if (!in.has("model")) config.model = initial_model(config, in);
  set_defaults([&](const char* key) { return in.has(key); }, config);
  check_train_config(config, in);
  check_options_have_effect(config, defaults_of(config), in);
  return config;
}

TrainConfig read_train_config(const std::filesystem::path& file,
                              std::span<const std::string> assignments) {
  Options options = Options::read_yaml(file);
  for (const std::string& assignment : assignments) options.set(assignment);
  return read_train_config(options);
}

std::string to_yaml(const TrainConfig& config) {
  OptionWriter out;
  visit_fields(out, config);
  return to_yaml(out.tree());
}

}  // namespace nunchi
