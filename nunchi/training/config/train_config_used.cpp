#include "nunchi/training/config/train_config_used.h"

#include <string>
#include <vector>

#include "nunchi/training/objectives/objectives.h"

namespace nunchi {
namespace {

class Used {
 public:
  // `why`: the reason why the next keys have no effect; empty: they have one. `because`: the keys
  // that decide it.
  Used(const OptionReader& in, std::string why, std::vector<std::string_view> because)
      : in_(in), why_(std::move(why)), because_(std::move(because)) {}

  template <class T>
  const Used& operator()(std::string_view key, const T& value, const T& otherwise) const {
    if (why_.empty() || value == otherwise) return *this;
    std::vector<std::string_view> keys = because_;
    keys.insert(keys.begin(), key);
    in_.fail(keys, "has no effect: " + why_);
  }

 private:
  const OptionReader& in_;
  std::string why_;
  std::vector<std::string_view> because_;
};

// The keys that decide the objective.
const std::vector<std::string_view> kObjective = {"training.objective", "model.family"};

void check_tokenizer(const TrainConfig& config, const TrainConfig& defaults,
                     const OptionReader& in) {
  // If a tokenizer is read instead of learned, the run notes it (run_tokenizers.h).
  if (!config.learns_tokenizer()) return;
  const TokenizerOptions &given = config.tokenizer.options, &usual = defaults.tokenizer.options;
  const bool bytes = given.kind == TokenizerKind::bytes;
  Used(in, bytes ? "there are 256 bytes, whatever the text" : "", {"tokenizer.kind"})(
      "tokenizer.vocabulary", given.vocabulary, usual.vocabulary)(
      "tokenizer.character_coverage", given.character_coverage, usual.character_coverage);
  Used(in, config.tokenizer.has_pieces() ? "" : "'tokenizer.kind' is neither bpe nor unigram",
       {"tokenizer.kind"})("tokenizer.byte_fallback", given.byte_fallback, usual.byte_fallback)(
      "tokenizer.symbols", given.symbols, usual.symbols)("tokenizer.split_digits",
                                                         given.split_digits, usual.split_digits)(
      "tokenizer.max_lines", given.max_lines, usual.max_lines);
}

void check_data(const TrainConfig& config, const TrainConfig& defaults, const OptionReader& in) {
  const DataConfig &data = config.data, &usual = defaults.data;
  const bool windows = data.cut == TextCut::windows;
  const std::vector<std::string_view> cut = {"data.cut", "training.objective", "model.family"};
  Used(in, windows ? "" : "nothing is cut into windows", cut)("data.window", data.window,
                                                              usual.window);
  Used(in, windows ? "a text that is cut into windows has no lines that are too long" : "", cut)(
      "data.max_length", data.limits.max_length, usual.limits.max_length);
  const bool pairs = info_of(config.training.objective).examples.kind == Examples::pairs;
  Used(in, pairs ? "" : "a text has no other side", kObjective)(
      "data.max_ratio", data.limits.max_ratio, usual.limits.max_ratio);
  const auto check_columns = [&](const CorpusPart& part, const char* key) {
    const CorpusPart first;
    if (!part.tsv.empty() ||
        (part.source_column == first.source_column && part.target_column == first.target_column)) {
      return;
    }
    in.fail(key, "names columns, which have no effect: only a 'tsv' has some");
  };
  for (const CorpusPart& part : data.train) check_columns(part, "data.train");
  if (data.validation) check_columns(*data.validation, "data.validation");
}

void check_training(const TrainConfig& config, const TrainConfig& defaults,
                    const OptionReader& in) {
  const TrainingOptions &training = config.training, &usual = defaults.training;
  const ObjectiveInfo& info = info_of(training.objective);
  const std::string objective = "'training.objective' is " + std::string(info.name);
  Used(in, info.reads("span_corruption.noise") ? "" : objective, kObjective)(
      "training.span_corruption.noise", training.span_corruption.noise,
      usual.span_corruption.noise)("training.span_corruption.mean_span",
                                   training.span_corruption.mean_span,
                                   usual.span_corruption.mean_span);
  Used(in, info.reads("mask_share") ? "" : objective, kObjective)(
      "training.mask_share", training.mask_share, usual.mask_share)(
      "training.whole_words", training.whole_words, usual.whole_words);
  if (const ClassifierConfig* classifier = as_classifier_config(config.model)) {
    const bool labelled = info.examples.kind == Examples::labelled;
    Used(in, labelled ? "" : objective + ", which teaches no labels", kObjective)(
        "model.labels", classifier->labels(), {});
  }
  const std::vector<std::string_view> schedule = {"training.schedule.kind"};
  const bool paper = training.schedule.kind == ScheduleKind::paper;
  Used(in, paper ? "" : "only the paper's schedule has a factor", schedule)(
      "training.schedule.factor", training.schedule.factor, usual.schedule.factor);
  Used(in, paper ? "the paper's schedule has a 'factor' in place of it" : "", schedule)(
      "training.schedule.learning_rate", training.schedule.peak, usual.schedule.peak);
  const bool constant = training.schedule.kind == ScheduleKind::constant;
  Used(in, constant ? "a constant rate does not change" : "", schedule)(
      "training.schedule.final", training.schedule.final, usual.schedule.final);
  Used(in, info.generates() ? "" : objective + ", which generates nothing", kObjective)(
      "generation.beam_size", config.generation.beam_size, defaults.generation.beam_size)(
      "generation.normalize", config.generation.normalize, defaults.generation.normalize)(
      "generation.max_length", config.generation.max_length, defaults.generation.max_length);
}

void check_validation(const TrainConfig& config, const TrainConfig& defaults,
                      const OptionReader& in) {
  const ValidationConfig &given = config.validation, &usual = defaults.validation;
  const std::string blind = config.data.validation ? "" : "there is no 'data.validation'";
  Used(in, blind, {"data.validation"})("validation.every", given.every, usual.every)(
      "validation.metric", given.metric, usual.metric)(
      "checkpoints.keep_best", config.checkpoints.keep_best, defaults.checkpoints.keep_best);
  const bool translates =
      given.metric == ValidationMetric::bleu || given.metric == ValidationMetric::chrf;
  Used(in,
       !blind.empty() ? blind
       : translates   ? ""
                      : "'validation.metric' is neither bleu nor chrf: nothing is translated",
       {"validation.metric", "data.validation", "training.objective", "model.family"})(
      "validation.lowercase", given.lowercase, usual.lowercase)("validation.beam_size",
                                                                given.beam_size, usual.beam_size);
}

}  // namespace

void check_used(const TrainConfig& config, const TrainConfig& defaults, const OptionReader& in) {
  check_tokenizer(config, defaults, in);
  check_data(config, defaults, in);
  check_training(config, defaults, in);
  check_validation(config, defaults, in);
}

}  // namespace nunchi
