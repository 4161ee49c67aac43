#include "nunchi/training/config/train_config_used.h"

#include <string>
#include <vector>

#include "nunchi/training/objectives/objectives.h"

namespace nunchi {
namespace {

// Checks keys that have no effect for one common reason.
class NoEffect {
 public:
  // `reason` says why the keys have no effect; if it is empty, they have one and nothing is
  // checked. `causes` are the keys that decide it.
  NoEffect(const OptionReader& in, std::string reason, std::vector<std::string_view> causes)
      : in_(in), reason_(std::move(reason)), causes_(std::move(causes)) {}

  // Fails if the key has no effect and its value is not the default.
  template <class T>
  const NoEffect& check(std::string_view key, const T& value, const T& default_value) const {
    if (reason_.empty() || value == default_value) return *this;
    std::vector<std::string_view> keys = causes_;
    keys.insert(keys.begin(), key);
    in_.fail(keys, "has no effect: " + reason_);
  }

 private:
  const OptionReader& in_;
  std::string reason_;
  std::vector<std::string_view> causes_;
};

// The keys that decide the objective.
const std::vector<std::string_view> kObjectiveKeys = {"training.objective", "model.family"};

void check_tokenizer(const TrainConfig& config, const TrainConfig& defaults,
                     const OptionReader& in) {
  // If a tokenizer is read instead of learned, make_tokenizers() tells the user.
  if (!config.learns_tokenizer()) return;
  const TokenizerOptions &given = config.tokenizer.options,
                         &default_values = defaults.tokenizer.options;
  const bool bytes = given.kind == TokenizerKind::bytes;
  NoEffect(in, bytes ? "a tokenizer of bytes always has all 256 bytes" : "", {"tokenizer.kind"})
      .check("tokenizer.vocabulary", given.vocabulary, default_values.vocabulary)
      .check("tokenizer.character_coverage", given.character_coverage,
             default_values.character_coverage);
  NoEffect(in, config.tokenizer.is_subword() ? "" : "'tokenizer.kind' is neither bpe nor unigram",
           {"tokenizer.kind"})
      .check("tokenizer.byte_fallback", given.byte_fallback, default_values.byte_fallback)
      .check("tokenizer.symbols", given.symbols, default_values.symbols)
      .check("tokenizer.split_digits", given.split_digits, default_values.split_digits)
      .check("tokenizer.max_lines", given.max_lines, default_values.max_lines);
}

void check_data(const TrainConfig& config, const TrainConfig& defaults, const OptionReader& in) {
  const DataConfig &data = config.data, &default_values = defaults.data;
  const bool windows = data.cut == TextCut::windows;
  const std::vector<std::string_view> cut_keys = {"data.cut", "training.objective", "model.family"};
  NoEffect(in, windows ? "" : "the data are not cut into windows", cut_keys)
      .check("data.window", data.window, default_values.window);
  NoEffect(in, windows ? "it limits lines, but the text is cut into windows" : "", cut_keys)
      .check("data.max_length", data.limits.max_length, default_values.limits.max_length);
  const bool pairs = info_of(config.training.objective).examples.kind == Examples::pairs;
  NoEffect(in, pairs ? "" : "only pairs of source and target have a length ratio", kObjectiveKeys)
      .check("data.max_ratio", data.limits.max_ratio, default_values.limits.max_ratio);
  const auto check_columns = [&](const CorpusPart& part, const char* key) {
    const CorpusPart default_part;
    if (!part.tsv.empty() || (part.source_column == default_part.source_column &&
                              part.target_column == default_part.target_column)) {
      return;
    }
    in.fail(key, "names columns, which have no effect: only a 'tsv' has columns");
  };
  for (const CorpusPart& part : data.train) check_columns(part, "data.train");
  if (data.validation) check_columns(*data.validation, "data.validation");
}

void check_training(const TrainConfig& config, const TrainConfig& defaults,
                    const OptionReader& in) {
  const TrainingOptions &training = config.training, &default_values = defaults.training;
  const ObjectiveInfo& info = info_of(training.objective);
  const std::string objective = "'training.objective' is " + std::string(info.name);
  NoEffect(in, info.reads("span_corruption.noise") ? "" : objective, kObjectiveKeys)
      .check("training.span_corruption.noise", training.span_corruption.noise,
             default_values.span_corruption.noise)
      .check("training.span_corruption.mean_span", training.span_corruption.mean_span,
             default_values.span_corruption.mean_span);
  NoEffect(in, info.reads("mask_share") ? "" : objective, kObjectiveKeys)
      .check("training.mask_share", training.mask_share, default_values.mask_share)
      .check("training.whole_words", training.whole_words, default_values.whole_words);
  if (const ClassifierConfig* classifier = as_classifier_config(config.model)) {
    const bool labelled = info.examples.kind == Examples::labelled;
    NoEffect(in, labelled ? "" : objective + ", which does not use labels", kObjectiveKeys)
        .check("model.labels", classifier->labels(), {});
  }
  const std::vector<std::string_view> schedule_keys = {"training.schedule.kind"};
  const bool paper = training.schedule.kind == ScheduleKind::paper;
  NoEffect(in, paper ? "" : "only the schedule 'paper' has a factor", schedule_keys)
      .check("training.schedule.factor", training.schedule.factor, default_values.schedule.factor);
  NoEffect(in, paper ? "the schedule 'paper' has a 'factor' instead" : "", schedule_keys)
      .check("training.schedule.learning_rate", training.schedule.peak,
             default_values.schedule.peak);
  const bool constant = training.schedule.kind == ScheduleKind::constant;
  NoEffect(in, constant ? "a constant schedule has no final rate" : "", schedule_keys)
      .check("training.schedule.final", training.schedule.final, default_values.schedule.final);
  NoEffect(in, info.generates() ? "" : objective + ", which does not generate text", kObjectiveKeys)
      .check("generation.beam_size", config.generation.beam_size, defaults.generation.beam_size)
      .check("generation.normalize", config.generation.normalize, defaults.generation.normalize)
      .check("generation.max_length", config.generation.max_length, defaults.generation.max_length);
}

void check_validation(const TrainConfig& config, const TrainConfig& defaults,
                      const OptionReader& in) {
  const ValidationConfig &given = config.validation, &default_values = defaults.validation;
  const std::string no_validation = config.data.validation ? "" : "there is no 'data.validation'";
  NoEffect(in, no_validation, {"data.validation"})
      .check("validation.every", given.every, default_values.every)
      .check("validation.metric", given.metric, default_values.metric)
      .check("checkpoints.keep_best", config.checkpoints.keep_best, defaults.checkpoints.keep_best);
  const bool translates =
      given.metric == ValidationMetric::bleu || given.metric == ValidationMetric::chrf;
  NoEffect(in,
           !no_validation.empty() ? no_validation
           : translates           ? ""
                        : "'validation.metric' is neither bleu nor chrf, so nothing is translated",
           {"validation.metric", "data.validation", "training.objective", "model.family"})
      .check("validation.lowercase", given.lowercase, default_values.lowercase)
      .check("validation.beam_size", given.beam_size, default_values.beam_size);
}

}  // namespace

void check_options_have_effect(const TrainConfig& config, const TrainConfig& defaults,
                               const OptionReader& in) {
  check_tokenizer(config, defaults, in);
  check_data(config, defaults, in);
  check_training(config, defaults, in);
  check_validation(config, defaults, in);
}

}  // namespace nunchi
