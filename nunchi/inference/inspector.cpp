#include "nunchi/inference/inspector.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>

#include "nunchi/autograd/tape.h"
#include "nunchi/base/error.h"
#include "nunchi/decoding/searcher.h"
#include "nunchi/inference/attention_analysis.h"
#include "nunchi/inference/filler.h"
#include "nunchi/inference/generator.h"
#include "nunchi/models/family.h"
#include "nunchi/nn/position/position.h"
#include "nunchi/ops/decode/top_tokens.h"
#include "nunchi/ops/gather_rows.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/text/mask_symbol.h"
#include "nunchi/text/one_line.h"
#include "nunchi/text/unicode.h"
#include "nunchi/text/words.h"
#include "nunchi/trace/attention_scores.h"
#include "nunchi/trace/trace.h"

namespace nunchi {
namespace {

// Positions that Inspection::positions shows, where the model has as many.
constexpr std::int64_t kPositionsShown = 64;

constexpr std::int64_t kShortest = 4;  // of InspectorOptions::max_length
constexpr int kNoNode = -2;            // no parent of a node of the beam

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

std::vector<Tap> wanted_taps(const InspectorOptions& options) {
  std::vector<Tap> taps = {Tap::attention_weights, Tap::stack_output};
  if (options.gradients) taps.push_back(Tap::weight_gradient);
  if (!options.taps) return taps;
  for (const Tap tap :
       {Tap::token_embedding, Tap::position, Tap::embedding, Tap::query, Tap::key, Tap::value,
        Tap::scores, Tap::scaled_scores, Tap::biased_scores, Tap::masked_scores,
        Tap::attention_context, Tap::attention_output, Tap::feed_forward_hidden, Tap::feed_forward,
        Tap::residual_sum, Tap::norm_output, Tap::layer_output}) {
    taps.push_back(tap);
  }
  return taps;
}

InspectedPlace place_of(const TapRecord& record, int head = -1) {
  return {.stack = record.stack, .layer = record.layer, .part = record.part, .head = head};
}

// A tap of one sentence.
ValueMatrix matrix_of(const TapRecord& record) {
  return {.rows = record.shape[0], .columns = record.shape[1], .values = record.values};
}

// One head's scores or weights of one sentence.
ValueMatrix head_of(const TapRecord& record, int head) {
  const std::int64_t rows = record.lengths[0], columns = record.key_lengths[0];
  const auto begin = record.values.begin() + head * rows * columns;
  return {.rows = rows,
          .columns = columns,
          .values = std::vector<float>(begin, begin + rows * columns)};
}

struct MeanAndDeviation {
  float mean, deviation;
};

MeanAndDeviation mean_and_deviation(std::span<const float> row) {
  const auto count = static_cast<double>(row.size());
  const double mean = std::accumulate(row.begin(), row.end(), 0.0) / count;
  double squares = 0;
  for (const float x : row) squares += (double{x} - mean) * (double{x} - mean);
  return {static_cast<float>(mean), static_cast<float>(std::sqrt(squares / count))};
}

float length_of(std::span<const float> row) {
  return static_cast<float>(
      std::sqrt(std::inner_product(row.begin(), row.end(), row.begin(), 0.0)));
}

// The statistics of one norm. `before` and `after` are its input and output, `branch` what the
// sub-layer adds and `stream` the sum.
InspectedNorm norm_of(const InspectedPlace& place, const ValueMatrix& before,
                      const ValueMatrix& after, const ValueMatrix& branch,
                      const ValueMatrix& stream) {
  InspectedNorm norm{.place = place};
  for (std::int64_t i = 0; i < before.rows; ++i) {
    const auto [mean, deviation] = mean_and_deviation(before.row(i));
    norm.mean_before.push_back(mean);
    norm.deviation_before.push_back(deviation);
    const auto [mean_after, deviation_after] = mean_and_deviation(after.row(i));
    norm.mean_after.push_back(mean_after);
    norm.deviation_after.push_back(deviation_after);
    norm.branch_length.push_back(length_of(branch.row(i)));
    norm.stream_length.push_back(length_of(stream.row(i)));
  }
  return norm;
}

// The norms of a trace, in the order in which they ran. Pre-norm normalises the stream before a
// sub-layer, post-norm the sum after it.
std::vector<InspectedNorm> norms_of(const Inspection& inspection, bool pre) {
  std::vector<InspectedNorm> norms;
  std::map<std::string, const ValueMatrix*> streams;  // of each stack, before the next sub-layer
  for (const InspectedTensor& tensor : inspection.tensors) {
    if (tensor.tap == "embedding") streams[tensor.place.stack] = &tensor.values;
    if (tensor.tap != "residual_sum") continue;
    const InspectedPlace& place = tensor.place;
    const ValueMatrix* const normed = inspection.tensor("norm_output", place);
    const ValueMatrix* const branch = inspection.tensor(
        place.part == "feed_forward" ? "feed_forward" : "attention_output", place);
    const ValueMatrix* const before = pre ? streams[place.stack] : &tensor.values;
    if (normed != nullptr && branch != nullptr && before != nullptr) {
      norms.push_back(norm_of(place, *before, *normed, *branch, tensor.values));
    }
    streams[place.stack] = &tensor.values;
  }
  return norms;
}

double cosine(std::span<const float> a, std::span<const float> b) {
  const double product = std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  const double lengths = double{length_of(a)} * double{length_of(b)};
  return lengths > 0 ? product / lengths : 0;
}

ValueMatrix similarity_of(const ValueMatrix& rows) {
  ValueMatrix similarity{.rows = rows.rows, .columns = rows.rows, .values = {}};
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    for (std::int64_t j = 0; j < rows.rows; ++j) {
      similarity.values.push_back(static_cast<float>(cosine(rows.row(i), rows.row(j))));
    }
  }
  return similarity;
}

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\n\v\f\r") == text.npos;
}

// The first `most` tokens; returns whether there are more.
bool cut(Tokens& tokens, std::int64_t most) {
  if (std::ssize(tokens) <= most) return false;
  tokens.resize(index(most));
  return true;
}

// The text, or what remains of one that was cut.
std::string shown_text(const Tokenizer& tokenizer, const std::string& text, const Tokens& tokens,
                       bool is_cut) {
  return in_one_line(is_cut ? tokenizer.decode(tokens) : repaired_utf8(text));
}

// The options of a model as numbers and names, whatever its family.
class ModelOptions {
 public:
  explicit ModelOptions(const Model& model) : options_(model.config()->function_options()) {}

  std::string text(std::string_view key) const {
    const OptionValue* found = options_.find(key);
    return found == nullptr ? std::string() : found->text;
  }
  std::int64_t number(std::string_view key) const {
    const std::string value = text(key);
    std::int64_t result = 0;
    std::from_chars(value.data(), value.data() + value.size(), result);
    return result;
  }

 private:
  OptionValue options_;
};

}  // namespace

// A run of the model and what it left behind.
struct Inspector::Run {
  Inspection inspection;
  Trace trace;
  Tensor scores;                        // of all tokens at each step, [R, V]
  std::vector<std::int64_t> positions;  // of each step
  Tokens labels;                        // the token of each step
  BeamRecord beam = {};
  Tokens generated = {};  // by the search, its end token included
};

Inspector::Inspector(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
                     const InspectorOptions& options)
    : context_(context), model_(model), tokenizers_(tokenizers), options_(options) {
  tokenizers.check_fit(model, "the inspector");
  if (ability_of<TranslationModel>(model) == nullptr &&
      ability_of<LanguageModel>(model) == nullptr &&
      ability_of<MaskedLanguageModel>(model) == nullptr) {
    throw Error("a model of the family " + model.family() + " cannot be inspected.");
  }
  const auto* translation = ability_of<TranslationModel>(model);
  if (translation != nullptr && translation->input_sizes().source_feature_width > 0) {
    throw Error("this model reads features, not text: it cannot be inspected.");
  }
  options_.search.n_best = 1;
  options_.search.sample = false;
  options_.search.check();
  if (options.max_length < kShortest || options.max_length > InspectorOptions::kLongest) {
    throw UsageError("the maximum length of an inspection must be from " +
                     std::to_string(kShortest) + " to " +
                     std::to_string(InspectorOptions::kLongest) + " tokens.");
  }
  options_.max_length = std::min(options.max_length, model.config()->max_length());
}

Inspection Inspector::inspect(const InspectedInput& input) const {
  const bool has_tokens = !(ability_of<TranslationModel>(model_) != nullptr ? tokenizers_.source()
                                                                            : tokenizers_.target())
                               .encode(input.text)
                               .empty();
  if (!has_tokens || is_blank(input.text)) {
    throw UsageError("there is nothing to inspect: the text has no words.");
  }
  Run run{.inspection = {}, .trace = Trace(wanted_taps(options_))};
  if (const auto* translation = ability_of<TranslationModel>(model_)) {
    translate(*translation, input, run);
  } else if (const auto* language = ability_of<LanguageModel>(model_)) {
    continue_text(*language, input, run);
  } else {
    fill(as_masked_language_model(model_), input, run);
  }
  Inspection& inspection = run.inspection;
  inspection.model = described_model();
  add_steps(run);
  add_attention(run);
  if (inspection.model.heads == 0 && !inspection.attention.empty()) {
    // A recurrent decoder attends with one head as wide as its states.
    inspection.model.heads = 1;
    inspection.model.head_width = inspection.model.width;
  }
  if (options_.taps) {
    add_tensors(run);
    inspection.norms = norms_of(inspection, inspection.model.norm == "pre");
    inspection.positions = positions();
  }
  if (!run.beam.steps.empty()) inspection.beam = beam_tree(run.beam, run.generated);
  return std::move(inspection);
}

void Inspector::translate(const TranslationModel& model, const InspectedInput& input,
                          Run& run) const {
  const DecoderTokens& tokens = tokenizers_.decoder();
  const Tokenizer &source_tokenizer = tokenizers_.source(), &tokenizer = tokenizers_.target();
  Inspection& inspection = run.inspection;
  inspection.task = Inspection::Task::translate;

  Tokens source_ids = source_tokenizer.encode(input.text);
  inspection.source_cut = cut(source_ids, options_.max_length - 1);
  inspection.source_text =
      shown_text(source_tokenizer, input.text, source_ids, inspection.source_cut);
  source_ids.push_back(source_tokenizer.special().end);
  const Source source =
      make_token_batch(context_, std::span(&source_ids, 1), model.input_sizes().source_vocabulary);
  Tokens target;
  if (input.target) {
    target = tokens.with_forced_first(tokenizer.encode(*input.target));
    inspection.given_target = true;
    inspection.target_cut = cut(target, options_.max_length - 1);
  } else {
    SearchOptions options = options_.search;
    options.max_length = std::min(options.max_length, options_.max_length - 1);
    const Hypothesis found =
        search(model, {.source = source, .tokens = tokens, .record = &run.beam}, options)[0][0];
    target = run.generated = found.tokens;
    if (tokens.forced_first != kNoToken) run.generated.erase(run.generated.begin());
    if (found.ended_by_eos) run.generated.push_back(tokens.end);
    inspection.target_cut = !found.ended_by_eos;
  }
  inspection.target_text = in_one_line(tokenizer.decode(target));
  compute_traced(run, [&] {
    return model.loss(make_pair_batch(source, std::span(&target, 1), model.target_vocabulary(),
                                      {.tokens = tokens}),
                      {});
  });
  Tokens read{tokens.start};
  read.insert(read.end(), target.begin(), target.end());
  run.labels = target;
  run.labels.push_back(tokens.end);
  inspection.source = described(source_tokenizer, source_ids);
  inspection.input = described(tokenizer, read);
  inspection.target = described(tokenizer, run.labels);
  predict_from_stack(model, run);
}

void Inspector::continue_text(const LanguageModel& model, const InspectedInput& input,
                              Run& run) const {
  const Tokenizer& tokenizer = tokenizers_.target();
  Inspection& inspection = run.inspection;
  inspection.task = Inspection::Task::continue_text;
  Tokens text = prompt_tokens(tokenizer, input.text);
  inspection.target_cut = cut(text, options_.max_length - 1);
  if (input.target) {
    const Tokens rest = tokenizer.encode(*input.target);
    text.insert(text.end(), rest.begin(), rest.end());
    inspection.given_target = true;
    inspection.target_cut = cut(text, options_.max_length) || inspection.target_cut;
    if (text.size() < 2) throw UsageError("a text of one token leaves nothing to predict.");
  } else {
    const DecoderTokens tokens = continuation_tokens(tokenizers_);
    SearchOptions options = options_.search;
    options.max_length = std::min({options.max_length, InspectorOptions::kContinuation,
                                   options_.max_length - std::ssize(text)});
    const Hypothesis found = search(
        model, context_, {.prefixes = std::span(&text, 1), .tokens = tokens, .record = &run.beam},
        options)[0][0];
    run.generated.assign(found.tokens.begin() + std::ssize(text), found.tokens.end());
    if (found.ended_by_eos) run.generated.push_back(tokens.end);
    text.insert(text.end(), run.generated.begin(), run.generated.end());
  }
  inspection.target_text = in_one_line(text_of(tokenizer, text));
  compute_traced(run, [&] {
    return model.loss(make_text_batch(context_, std::span(&text, 1), model.target_vocabulary()),
                      {});
  });
  run.labels.assign(text.begin() + 1, text.end());
  text.pop_back();
  inspection.input = described(tokenizer, text);
  inspection.target = described(tokenizer, run.labels);
  predict_from_stack(model, run);
}

// Predicts the masks of a text or, if it has none, each of its tokens.
void Inspector::fill(const MaskedLanguageModel& model, const InspectedInput& input,
                     Run& run) const {
  const Tokenizer& tokenizer = tokenizers_.target();
  Inspection& inspection = run.inspection;
  inspection.task = Inspection::Task::fill;
  if (input.target) {
    throw UsageError("a model of the family " + model_.family() +
                     " reads one text: a target has no meaning for it.");
  }
  const std::optional<std::int32_t> mask = find_mask_token(tokenizer);
  const auto max_tokens = static_cast<std::size_t>(options_.max_length - 2);
  auto [text, rest] = mask ? tokens_with_masks(tokenizer, *mask, input.text, max_tokens)
                           : MaskedTokens{.tokens = tokenizer.encode(input.text), .rest = {}};
  inspection.target_cut = cut(text, options_.max_length - 2) || !rest.empty();
  inspection.target_text = shown_text(tokenizer, input.text, text, inspection.target_cut);
  MaskedText masked{.inputs = enclosed(text, tokenizer.special(), options_.max_length)};
  const bool has_mask = mask && std::ranges::find(text, *mask) != text.end();
  for (std::int32_t i = 1; i + 1 < std::ssize(masked.inputs); ++i) {
    if (has_mask && masked.inputs[index(i)] != *mask) continue;
    masked.positions.push_back(i);
    masked.labels.push_back(masked.inputs[index(i)]);
  }
  const auto predicted = [&](const MaskedBatch& batch) {
    return gather_rows(model.hidden(batch.inputs), batch.masked, batch.masked_rows);
  };
  const auto batch_of = [&] {
    return make_masked_batch(context_, std::span(&masked, 1), model.vocabulary());
  };
  const MaskedBatch read = batch_of();
  run.scores = model.scores(predicted(read), read.masked).rows(0, std::ssize(masked.positions));
  if (has_mask) masked.labels = to_host<std::int32_t>(top_tokens(run.scores, 1).ids);
  compute_traced(run, [&] {
    const MaskedBatch batch = batch_of();
    return model.loss(predicted(batch), batch.masked, batch.labels, {});
  });
  run.labels = masked.labels;
  run.positions.assign(masked.positions.begin(), masked.positions.end());
  inspection.input = described(tokenizer, masked.inputs);
}

// Computes a loss with the trace attached, and the gradients of its attention weights.
void Inspector::compute_traced(Run& run, const std::function<VocabularyLoss()>& loss) const {
  const TraceScope scope(context_, run.trace);
  if (!options_.gradients) {
    loss();
    return;
  }
  Tape tape(context_);
  const VocabularyLoss computed = loss();
  // Without attention, nothing has a gradient.
  if (computed.total.needs_gradient()) tape.backward(computed.total);
}

// The scores of a decoder's rows.
void Inspector::predict_from_stack(const SequenceModel& model, Run& run) const {
  const TapRecord* const hidden = run.trace.find(Tap::stack_output, "decoder", -1);
  if (hidden == nullptr) throw Error("the model's decoder was not traced (internal error).");
  const Shape shape{hidden->shape[0], hidden->shape[1]};
  const Tensor floats = from_host(context_, hidden->values, shape);
  const Tensor rows = Tensor::empty(context_, model_.parameters().dtype(), shape);
  convert(floats, rows);
  run.scores = model.next_scores(rows);
  run.positions.resize(index(shape[0]));
  std::iota(run.positions.begin(), run.positions.end(), std::int64_t{0});
}

void Inspector::add_steps(Run& run) const {
  const Tokenizer& tokenizer = tokenizers_.target();
  const std::vector<float> all = host_floats(run.scores);
  const auto vocabulary = index(run.scores.size(1));
  const std::size_t count = std::min(vocabulary, index(options_.best));
  for (std::size_t i = 0; i < run.labels.size(); ++i) {
    const std::span<const float> logits = std::span(all).subspan(i * vocabulary, vocabulary);
    const double largest = double{*std::max_element(logits.begin(), logits.end())};
    double sum = 0;
    for (const float logit : logits) sum += std::exp(double{logit} - largest);
    const auto token = [&](std::int32_t id) -> TokenProbability {
      const double logit = double{logits[index(id)]};
      return {.piece = tokenizer.piece(id),
              .id = id,
              .probability = std::exp(logit - largest) / sum,
              .logit = logit};
    };
    std::vector<std::int32_t> order(vocabulary);
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
                      order.end(), [&](std::int32_t a, std::int32_t b) {
                        const float of_a = logits[index(a)], of_b = logits[index(b)];
                        return of_a > of_b || (of_a == of_b && a < b);
                      });
    InspectedStep& step = run.inspection.steps.emplace_back();
    step.position = run.positions[i];
    step.chosen = token(run.labels[i]);
    for (std::size_t rank = 0; rank < count; ++rank) step.best.push_back(token(order[rank]));
  }
}

void Inspector::add_attention(Run& run) const {
  Inspection& inspection = run.inspection;
  std::vector<const TapRecord*> gradients;
  for (const TapRecord& record : run.trace.records()) {
    if (record.tap == Tap::weight_gradient) gradients.push_back(&record);
    if (record.tap != Tap::attention_weights) continue;
    for (int head = 0; head < record.heads; ++head) {
      const InspectedPlace place = place_of(record, head);
      ValueMatrix weights = head_of(record, head);
      HeadKind kind = measured_kind(place, weights, axes_of(inspection, place).keys.words);
      inspection.attention.push_back({place, std::move(kind), std::move(weights)});
    }
  }
  // The backward pass runs from the last layer to the first.
  std::ranges::reverse(gradients);
  for (const TapRecord* record : gradients) {
    for (int head = 0; head < record->heads; ++head) {
      InspectedWeights entry{place_of(*record, head), head_of(*record, head)};
      const InspectedHead* const used = inspection.head(entry.place);
      for (std::size_t i = 0; i < entry.weights.values.size(); ++i) {
        float& value = entry.weights.values[i];
        value = std::fabs(value) * used->weights.values[i];
      }
      inspection.gradient_weight.push_back(std::move(entry));
    }
  }
  inspection.rollout = rollout_of(inspection.attention);
  inspection.alignment = options_.alignment_heads.empty()
                             ? alignment_of(inspection.attention)
                             : alignment_of(inspection.attention, options_.alignment_heads);
}

void Inspector::add_tensors(Run& run) {
  for (const TapRecord& record : run.trace.records()) {
    if (record.tap == Tap::attention_weights || record.tap == Tap::weight_gradient) continue;
    const std::string name(name_of(record.tap));
    if (record.heads == 0) {
      run.inspection.tensors.push_back({name, place_of(record), matrix_of(record)});
    }
    for (int head = 0; head < record.heads; ++head) {
      run.inspection.tensors.push_back({name, place_of(record, head), head_of(record, head)});
    }
  }
}

// Special tokens are words of their own.
InspectedText Inspector::described(const Tokenizer& tokenizer, const Tokens& ids) const {
  const std::optional<std::int32_t> mask = find_mask_token(tokenizer);
  const SpecialTokens special = tokenizer.special();
  const auto stands_alone = [&](std::int32_t id) {
    return (special.contains(id) && id != special.unknown) || (mask && id == *mask) ||
           id == tokenizers_.decoder().start || id == tokenizers_.decoder().end;
  };
  InspectedText text{.ids = ids};
  for (const std::int32_t id : ids) text.pieces.push_back(repaired_utf8(tokenizer.piece(id)));
  std::size_t begin = 0;
  while (begin < ids.size()) {
    std::size_t end = begin + 1;
    if (!stands_alone(ids[begin])) {
      while (end < ids.size() && !stands_alone(ids[end])) ++end;
    }
    const Words words = words_of(std::span(text.pieces).subspan(begin, end - begin));
    auto first = static_cast<int>(begin);
    for (std::size_t w = 0; w < words.texts.size(); ++w) {
      text.words.emplace_back(first, first + words.sizes[w]);
      text.word_texts.push_back(words.texts[w]);
      first += words.sizes[w];
    }
    begin = end;
  }
  return text;
}

InspectedModel Inspector::described_model() const {
  const ModelOptions options(model_);
  InspectedModel model{.name = options_.model_name,
                       .family = model_.family(),
                       .parameters = model_.parameters().count(),
                       .width = options.number("width"),
                       .heads = options.number("heads"),
                       .head_width = options.number("head_width"),
                       .encoder_layers = options.number("encoder_layers"),
                       .decoder_layers = options.number("decoder_layers"),
                       .position = options.text("position"),
                       .norm = options.text("norm_placement"),
                       .vocabulary = tokenizers_.target().vocabulary()};
  if (model.head_width == 0 && model.heads > 0) model.head_width = model.width / model.heads;
  const std::int64_t layers = options.number("layers");
  if (layers > 0) {
    const bool decodes = ability_of<LanguageModel>(model_) != nullptr;
    (decodes ? model.decoder_layers : model.encoder_layers) = layers;
  }
  return model;
}

std::optional<InspectedPositions> Inspector::positions() const {
  const nn::Position* const position = model_.position("encoder");
  if (position == nullptr) return std::nullopt;
  const std::int64_t count = std::min(kPositionsShown, model_.config()->max_length());
  InspectedPositions shown{.kind = ModelOptions(model_).text("position")};
  const Variable added = position->embed(context_, count);
  // Rotary positions have a table of cosines and sines instead.
  const Tensor table = added.defined() ? added.value() : position->reserve(context_, count);
  if (table.defined()) {
    shown.rows = {
        .rows = count, .columns = table.size(1), .values = host_floats(table.rows(0, count))};
    shown.similarity = similarity_of(shown.rows);
  }
  const ScoreBias bias = position->score_bias(context_);
  if (bias.kind != ScoreBias::Kind::none) {
    const auto heads = static_cast<int>(ModelOptions(model_).number("heads"));
    const HostScoreBias values(bias, heads);
    for (int head = 0; head < heads; ++head) {
      ValueMatrix& matrix = shown.biases.emplace_back();
      matrix.rows = matrix.columns = count;
      for (std::int64_t i = 0; i < count; ++i) {
        for (std::int64_t j = 0; j < count; ++j) {
          matrix.values.push_back(static_cast<float>(values.at(head, j - i)));
        }
      }
    }
  }
  if (shown.rows.values.empty() && shown.biases.empty()) return std::nullopt;
  return shown;
}

// Of each step the candidates that continued or finished, and the best of the others.
BeamTree Inspector::beam_tree(const BeamRecord& record, const Tokens& generated) const {
  using Outcome = BeamCandidate::Outcome;
  const Tokenizer& tokenizer = tokenizers_.target();
  const auto beam = static_cast<std::size_t>(record.beam_size);
  const std::size_t most_dropped = std::max<std::size_t>(beam, 3);
  BeamTree tree{.size = record.beam_size};
  std::vector<int> rows(beam, -1);  // the nodes of the hypotheses that the step continues
  int best = -1, next_id = 1;
  for (std::size_t t = 0; t < record.steps.size(); ++t) {
    std::vector<BeamNode>& nodes = tree.steps.emplace_back();
    std::vector<int> next_rows(beam, -1);
    std::size_t rank = 0, dropped = 0;
    int best_here = -1;
    for (const BeamCandidate& candidate : record.steps[t]) {
      ++rank;
      BeamNode node{.id = next_id,
                    .parent = rows[index(candidate.parent)],
                    .piece = repaired_utf8(tokenizer.piece(candidate.token)),
                    .token = candidate.token,
                    .score = candidate.score,
                    .log_probability = candidate.log_probability};
      const std::string place =
          "rank " + std::to_string(rank) + "; the beam keeps " + std::to_string(beam);
      switch (candidate.outcome) {
        case Outcome::kept:
          next_rows[index(candidate.row)] = node.id;
          break;
        case Outcome::ended:
          node.state = BeamNode::State::finished;
          node.why = "it ends here";
          break;
        case Outcome::cut:
          node.state = BeamNode::State::finished;
          node.why = "it has reached the maximum length";
          break;
        case Outcome::outranked:
          node.why = place;
          break;
        case Outcome::end_outranked:
          node.why = "it would end, but with " + place;
          break;
        case Outcome::search_done:
          node.why = "enough hypotheses have finished";
          break;
      }
      const bool lives =
          candidate.outcome == Outcome::kept || node.state == BeamNode::State::finished;
      if (!lives) {
        node.state = BeamNode::State::dropped;
        if (++dropped > most_dropped) continue;
      }
      const bool on_best_path =
          lives && t < generated.size() && node.parent == best && candidate.token == generated[t];
      if (on_best_path) best_here = node.id;
      ++next_id;
      nodes.push_back(std::move(node));
    }
    if (best_here >= 0) tree.best.push_back(best = best_here);
    if (best_here < 0) best = kNoNode;
    rows = std::move(next_rows);
  }
  return tree;
}

}  // namespace nunchi
