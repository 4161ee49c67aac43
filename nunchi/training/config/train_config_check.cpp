#include "nunchi/training/config/train_config_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "nunchi/training/objectives/objectives.h"

namespace nunchi {
namespace {

void check_tokenizer(const TrainConfig& config, const OptionReader& in) {
  const TokenizerConfig& tokenizer = config.tokenizer;
  if (tokenizer.shared && !tokenizer.target.empty()) {
    in.fail({"tokenizer.target", "tokenizer.shared"},
            "has no effect while 'tokenizer.shared' is true: 'tokenizer.source' is for both sides");
  }
  if (!tokenizer.shared && tokenizer.source.empty() != tokenizer.target.empty()) {
    const std::string_view given =
        tokenizer.source.empty() ? "tokenizer.target" : "tokenizer.source";
    in.fail({tokenizer.source.empty() ? "tokenizer.source" : "tokenizer.target", given,
             "tokenizer.shared"},
            "is missing: set both tokenizer files or neither");
  }
  const ObjectiveInfo& objective = info_of(config.training.objective);
  if (objective.tokenizer.shared && !tokenizer.shared) {
    in.fail({"tokenizer.shared", "training.objective", "model.family"},
            fmt::format("must be true for the objective {}: both sides come from one text",
                        objective.name));
  }
  if (const std::string why = config.model->shared_vocabulary_reason();
      !tokenizer.shared && !why.empty()) {
    in.fail({"tokenizer.shared", "model.tied_embeddings", "model.family"}, "is false, but " + why);
  }
}

// Only for a tokenizer that will be learned; one from a file is checked when it is read.
void check_symbols(const TrainConfig& config, const OptionReader& in) {
  const ObjectiveInfo& objective = info_of(config.training.objective);
  const std::vector<std::string>& symbols = config.tokenizer.options.symbols;
  if (!config.learns_tokenizer() || objective.tokenizer.symbols.empty()) return;
  const auto is_listed = [&](std::string_view symbol) {
    return std::ranges::find(symbols, symbol) != symbols.end();
  };
  if (!config.tokenizer.is_subword()) {
    in.fail({"tokenizer.kind", "training.objective", "model.family"},
            fmt::format("must be bpe or unigram for the objective {}: it needs the symbol {}, and "
                        "tokenizers of characters or bytes have no symbols",
                        objective.name, objective.tokenizer.symbols.front()));
  }
  if (std::ranges::none_of(objective.tokenizer.symbols, is_listed)) {
    in.fail({"tokenizer.symbols", "training.objective", "model.family"},
            fmt::format("must contain {}: the objective {} replaces removed tokens by such "
                        "symbols",
                        objective.tokenizer.symbols.front(), objective.name));
  }
}

// The family must support the objective.
void check_objective(const TrainConfig& config, const OptionReader& in) {
  const std::vector<ObjectiveKind> supported = config.model->objectives();
  if (std::ranges::find(supported, config.training.objective) != supported.end()) return;
  std::string names;
  for (const ObjectiveKind kind : supported) {
    names += (names.empty() ? "" : " or ") + std::string(info_of(kind).name);
  }
  in.fail({"training.objective", "model.family"},
          fmt::format("is {}, but the family {} supports only {}",
                      info_of(config.training.objective).name, config.model->family(), names));
}

void check_part(const CorpusPart& part, const ObjectiveInfo& objective, const std::string& key,
                const OptionReader& in) {
  if (part.last_line > 0 && part.last_line < part.first_line) {
    in.fail(key, "has a 'last_line' before its 'first_line'");
  }
  const auto fail = [&](const std::string& what) {
    in.fail({key, "training.objective", "model.family"}, what);
  };
  if (objective.examples.kind == Examples::text) {
    if (part.text.empty() || !part.source.empty() || !part.features.empty() ||
        !part.target.empty() || !part.tsv.empty()) {
      fail(fmt::format("must name a 'text' and nothing else for the objective {}", objective.name));
    }
    return;
  }
  if (!part.text.empty()) {
    fail(
        fmt::format("names a 'text', but the objective {} learns from pairs: 'source' and "
                    "'target', or one 'tsv'",
                    objective.name));
  }
  if (!part.features.empty()) {
    if (objective.examples.kind != Examples::pairs) {
      fail(fmt::format("names 'features', which the objective {} cannot learn from",
                       objective.name));
    }
    if (!part.source.empty() || !part.tsv.empty() || part.target.empty()) {
      in.fail(key, "must name 'features' and 'target' and nothing else");
    }
    return;
  }
  const bool pair = !part.source.empty() && !part.target.empty();
  const bool one_side = part.source.empty() != part.target.empty();
  if (one_side || pair == !part.tsv.empty()) {
    in.fail(key, "must name either 'source' and 'target' or one 'tsv'");
  }
}

void check_positions(const TrainConfig& config, const OptionReader& in) {
  const DataConfig& data = config.data;
  const std::int64_t model_limit = config.model->max_length();
  const auto fail = [&](std::string_view length, const std::string& what) {
    in.fail({"model.max_positions", "model.position", length},
            fmt::format("is {}, but {}", model_limit, what));
  };
  if (data.text_window() > 0) {
    if (model_limit < data.window) {
      fail("data.window", fmt::format("a window has {} tokens; see 'data.window'", data.window));
    }
    return;
  }
  const ObjectiveInfo& objective = info_of(config.training.objective);
  const std::int64_t max_tokens =
      objective.examples.max_tokens(data.limits.max_length, config.training);
  if (model_limit < max_tokens) {
    fail("data.max_length",
         fmt::format("sentences have up to {} tokens, <s> and </s> included; see "
                     "'data.max_length', which is {}",
                     max_tokens, data.limits.max_length));
  }
  if (objective.generates() && model_limit < config.generation.max_length) {
    fail("generation.max_length",
         fmt::format("up to {} tokens are generated; see 'generation.max_length'",
                     config.generation.max_length));
  }
}

void check_data(const TrainConfig& config, const OptionReader& in) {
  const DataConfig& data = config.data;
  const ObjectiveInfo& objective = info_of(config.training.objective);
  if (data.train.empty()) {
    in.fail({"data.train", "data"},
            fmt::format("is missing; it names the {} to learn from",
                        objective.examples.kind == Examples::text    ? "text"
                        : objective.examples.kind == Examples::pairs ? "pairs of sentences"
                                                                     : "texts and labels"));
  }
  for (const CorpusPart& part : data.train) check_part(part, objective, "data.train", in);
  if (data.validation) check_part(*data.validation, objective, "data.validation", in);
  const bool features = !data.train.front().features.empty();
  const auto other_kind = [&](const CorpusPart& part) { return part.features.empty() == features; };
  if (std::ranges::any_of(data.train, other_kind) ||
      (data.validation && other_kind(*data.validation))) {
    in.fail({"data.train", "data.validation"}, "names 'features' in some parts but not in others");
  }
  const ValidationMetric metric = config.validation.metric;
  if (features && (metric == ValidationMetric::bleu || metric == ValidationMetric::chrf)) {
    in.fail({"validation.metric", "data.train"},
            "compares translations of text, but the sources are features; use 'loss'");
  }
  if (objective.examples.kind == Examples::text && data.cut != objective.examples.cut) {
    in.fail({"data.cut", "training.objective", "model.family"},
            fmt::format("must be '{}' for the objective {}",
                        objective.examples.cut == TextCut::lines ? "lines" : "windows",
                        objective.name));
  }
  if (objective.examples.kind != Examples::text && data.cut != TextCut::lines) {
    in.fail({"data.cut", "training.objective", "model.family"},
            fmt::format("applies only to plain text, which the objective {} does not use",
                        objective.name));
  }
  check_positions(config, in);
  if (data.limits.max_ratio > 0 && data.limits.max_ratio < 1) {
    in.fail("data.max_ratio", "must be 1 or more, or 0 for no limit");
  }
}

void check_schedule(const TrainingOptions& training, const OptionReader& in) {
  using Kind = ScheduleKind;
  const Schedule& schedule = training.schedule;
  if (schedule.kind == Kind::paper && schedule.warmup == 0) {
    in.fail({"training.schedule.warmup", "training.schedule.kind"},
            "must be at least 1 for the schedule 'paper'");
  }
  if (schedule.kind != Kind::paper && schedule.peak == 0) {
    in.fail({"training.schedule.learning_rate", "training.schedule.kind"},
            "is 0, so nothing would be learned");
  }
  if (schedule.kind != Kind::paper && schedule.final > schedule.peak) {
    in.fail({"training.schedule.final", "training.schedule.learning_rate"},
            "is above 'training.schedule.learning_rate'");
  }
  const bool ends = schedule.kind == Kind::cosine || schedule.kind == Kind::linear;
  if (ends && training.max_steps <= schedule.warmup) {
    in.fail({"training.max_steps", "training.schedule.warmup", "training.schedule.kind"},
            "must be above 'training.schedule.warmup', which is " +
                std::to_string(schedule.warmup) + ": this schedule ends at the last step");
  }
}

void check_metric(const TrainConfig& config, const OptionReader& in) {
  using Metric = ValidationMetric;
  const ObjectiveInfo& objective = info_of(config.training.objective);
  const Metric metric = config.validation.metric;
  const bool translations = metric == Metric::bleu || metric == Metric::chrf;
  const bool fits = metric == Metric::loss || (translations && objective.translates()) ||
                    (metric == Metric::accuracy && objective.output == OutputKind::choices);
  if (fits) return;
  if (objective.translates()) {
    in.fail({"validation.metric", "training.objective", "model.family"},
            fmt::format("cannot be 'accuracy' for the objective {}", objective.name));
  }
  in.fail(
      {"validation.metric", "training.objective", "model.family"},
      fmt::format("must be 'loss'{} for the objective {}, which does not translate",
                  objective.output == OutputKind::choices ? " or 'accuracy'" : "", objective.name));
}

void check_training(const TrainConfig& config, const OptionReader& in) {
  const TrainingOptions& training = config.training;
  check_schedule(training, in);
  const OptimizerConfig& optimizer = training.optimizer;
  if (optimizer.kind == OptimizerConfig::Kind::adam && optimizer.adam.weight_decay > 0) {
    in.fail({"training.optimizer.weight_decay", "training.optimizer.kind"},
            "needs 'kind: adamw'; adam has no weight decay");
  }
  const bool ends = training.max_steps > 0 || training.max_epochs > 0 || training.max_minutes > 0;
  if (!ends && config.validation.patience == 0) {
    in.fail({"training", "training.max_steps", "training.max_epochs", "training.max_minutes",
             "validation.patience"},
            "never ends: set 'max_steps', 'max_epochs', 'max_minutes' or 'validation.patience'");
  }
  check_metric(config, in);
  if (config.validation.patience > 0 && (!config.data.validation || config.validation.every == 0)) {
    in.fail({"validation.patience", "validation.every"},
            "needs 'data.validation' and 'validation.every' above 0");
  }
  const CheckpointConfig& checkpoints = config.checkpoints;
  const bool validates = config.data.validation.has_value();
  if (checkpoints.average > (validates ? checkpoints.keep_best : checkpoints.keep_last)) {
    const std::string limit = validates ? "checkpoints.keep_best" : "checkpoints.keep_last";
    in.fail({"checkpoints.average", limit}, "is larger than '" + limit + "'");
  }
}

}  // namespace

void check_train_config(const TrainConfig& config, const OptionReader& in) {
  check_objective(config, in);
  check_tokenizer(config, in);
  check_symbols(config, in);
  check_data(config, in);
  check_training(config, in);
}

}  // namespace nunchi
