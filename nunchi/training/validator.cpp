#include "nunchi/training/validator.h"

#include "nunchi/base/error.h"
#include "nunchi/evaluation/bleu.h"
#include "nunchi/evaluation/chrf.h"
#include "nunchi/ops/tensors.h"

namespace nunchi {
namespace {

bool stopped(const std::atomic<bool>* stop) { return stop != nullptr && stop->load(); }

TranslatorOptions translator_options(const TrainConfig& config) {
  TranslatorOptions options;
  options.search.beam_size = static_cast<int>(config.validation.beam_size);
  options.search.normalize = config.generation.normalize;
  options.search.max_length = config.generation.max_length;
  options.max_source_length = config.data.limits.max_length;
  return options;
}

}  // namespace

Validator::Validator(const ValidatorParts& parts, const TrainConfig& config)
    : objective_(parts.objective),
      order_({{&parts.pairs, 1}}, {.batch_tokens = config.training.batch_tokens,
                                   .source_tokens = source_tokens(config.training),
                                   .text_window = config.data.text_window()}),
      lowercase_(config.validation.lowercase) {
  if (order_.epoch_pairs() == 0) {
    const CorpusPart part = *config.data.validation_part();
    throw Error(names_of(std::span(&part, 1)) + " has no example to validate with.");
  }
  if (!needs_lines(config)) return;
  translator_.emplace(parts.model.parameters().weights().context(), parts.model, parts.tokenizers,
                      translator_options(config));
  for (const RawPair& pair : parts.lines) {
    sources_.push_back({.text = pair.source});
    references_.push_back(pair.target);
  }
}

bool Validator::needs_lines(const TrainConfig& config) {
  return config.validation.metric == ValidationMetric::bleu ||
         config.validation.metric == ValidationMetric::chrf;
}

std::optional<ValidationScores> Validator::operator()(const std::atomic<bool>* stop) {
  std::optional<ValidationScores> scores = loss(stop);
  if (!scores || !translator_) return scores;
  if (!translate(stop)) return std::nullopt;
  const std::vector<evaluation::Lines> references = {references_};
  scores->bleu =
      evaluation::corpus_bleu(translations_, references, {.lowercase = lowercase_}).score;
  scores->chrf = evaluation::corpus_chrf(translations_, references, {.lowercase = lowercase_});
  return scores;
}

std::vector<SampleTranslation> Validator::samples() const {
  constexpr std::size_t kSamples = 5;
  std::vector<SampleTranslation> samples;
  const std::size_t count = std::min(kSamples, translations_.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t line = i * translations_.size() / count;
    samples.push_back({sources_[line].text, references_[line], translations_[line]});
  }
  return samples;
}

std::optional<ValidationScores> Validator::loss(const std::atomic<bool>* stop) const {
  const EpochBatches batches = order_.epoch(0);
  double sum = 0;
  std::int64_t tokens = 0;
  std::optional<std::int64_t> correct;
  for (std::int64_t i = 0; i < batches.size(); ++i) {
    if (stopped(stop)) return std::nullopt;
    const ObjectiveLoss loss = objective_.loss(gather(order_, batches.batch(i)), 0);
    sum += to_host<double>(loss.total.value())[0];
    tokens += loss.target_tokens;
    if (loss.correct) correct = correct.value_or(0) + *loss.correct;
  }
  ValidationScores scores{.loss = sum / static_cast<double>(tokens)};
  if (correct) scores.accuracy = static_cast<double>(*correct) / static_cast<double>(tokens);
  return scores;
}

bool Validator::translate(const std::atomic<bool>* stop) {
  constexpr std::size_t kLinesPerCall = 512;
  translations_.clear();
  for (std::size_t first = 0; first < sources_.size(); first += kLinesPerCall) {
    if (stopped(stop)) return false;
    const std::size_t count = std::min(kLinesPerCall, sources_.size() - first);
    const auto lines = std::span<const SourceLine>(sources_).subspan(first, count);
    for (Translations& found : translator_->translate(lines)) {
      translations_.push_back(std::move(found.front().text));
    }
  }
  return true;
}

}  // namespace nunchi
