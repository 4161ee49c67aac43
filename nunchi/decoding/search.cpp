#include "nunchi/decoding/search.h"

#include <algorithm>
#include <cmath>

#include "nunchi/base/error.h"
#include "nunchi/kernels/memory.h"
#include "nunchi/ops/decode/next_hypotheses.h"
#include "nunchi/ops/decode/phrase_hypotheses.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

void copy(const Tensor& from, const Tensor& to) {
  on_device(from.context(), [&](auto& ctx) {
    kernels::run(ctx, kernels::CopyBytes{.bytes = from.bytes(),
                                         .from = from.data<std::int32_t>(),
                                         .to = to.data<std::int32_t>()});
  });
}

// f(first, count) for each run of adjacent numbers.
void for_each_run(std::span<const std::int64_t> numbers, const auto& f) {
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    f(numbers[i], static_cast<std::int64_t>(end - i));
    i = end;
  }
}

// Devices are fastest when one token is suppressed, the usual case.
Tensor all_but_first(ContextBase& context, const Tokens& tokens) {
  if (tokens.size() < 2) return {};
  const auto others = std::span(tokens).subspan(1);
  return from_host(context, others, {std::ssize(others)});
}

// Candidates of each row. A record shows a few that had no chance, too.
std::int64_t candidates_of(const SearchSetup& setup, std::int64_t vocabulary) {
  const std::int64_t beam = setup.limits.beam_size;
  if (setup.record != nullptr) return std::min(beam + 4, vocabulary);
  return beam == 1 ? 1 : std::min(beam + 1, vocabulary);
}

nn::CacheLimits cache_limits(const SearchSetup& setup, const SequenceModel& model) {
  const SearchLimits& limits = setup.limits;
  return {.units = limits.units,
          .beam = limits.beam_size,
          // The start token is read and the last one is not.
          .positions =
              std::max<std::int64_t>(1, std::min(limits.max_tokens + 1, model.max_length()) - 1),
          .slots = limits.cached_tokens,
          .memory_rows = limits.source_rows,
          .source_length = limits.source_length};
}

}  // namespace

// What the options of the units of a step ask for. It decides which kernels are launched.
struct Search::StepKind {
  bool samples = false;          // some unit draws tokens
  bool takes_likeliest = false;  // some unit takes the most likely ones
  bool any_ngram = false;        // some unit restricts n-grams
  bool any_phrases = false;      // some unit must contain phrases
  std::int64_t max_banned = 0;

  void add(const kernels::UnitOptions& unit) {
    (unit.sample != 0 ? samples : takes_likeliest) = true;
    any_ngram = any_ngram || unit.no_repeat_ngram > 0;
    max_banned = std::max(max_banned, kernels::max_banned(unit));
  }
  std::int64_t number() const {
    return max_banned << 4 | (any_phrases ? 8 : 0) | (samples ? 4 : 0) | (takes_likeliest ? 2 : 0) |
           (any_ngram ? 1 : 0);
  }
};

// What a step chose from, for a record.
struct Search::Considered {
  std::int64_t first_parent = 0;
  Tensor log_probs, ids;       // [width, candidates]
  std::vector<double> scores;  // [width] of the hypotheses that the candidates continue
  std::int32_t finished = 0;   // hypotheses before the step
  const ActiveHypotheses* to = nullptr;
};

// The rows of a step and where they come from and go to.
struct Search::StepRows {
  std::int64_t units = 0;  // with `counted`, at most
  std::int64_t width = 1;
  bool counted = false;   // the number of units is read from device memory
  bool entering = false;  // the first step of units, which join the active ones
  std::int64_t first_parent = 0;
  StepKind kind = {};
};

Search::Search(GeneratingModel model, ContextBase& context, const SearchSetup& setup)
    : generating_(model),
      model_(model.model()),
      context_(context),
      setup_(setup),
      beam_(setup.limits.beam_size),
      stride_(setup.limits.max_tokens + 1),
      candidates_(candidates_of(setup, model_.target_vocabulary())),
      current_(context, setup.limits.units * beam_, stride_),
      next_hypotheses_(context, setup.limits.units * beam_, stride_),
      entering_(context, setup.limits.units, stride_),
      finished_(context, {.units = setup.limits.units, .beam = beam_, .stride = stride_}),
      options_(context, setup.limits.units),
      phrases_(context, setup.limits.units),
      suppressed_(all_but_first(context, setup.tokens.suppressed)),
      banned_(Tensor::empty(context, DType::f64, {setup.limits.units * beam_})),
      next_tokens_(zeros(context, DType::i32, {nn::decode_capacity(setup.limits.units * beam_)})),
      parents_(Tensor::empty(context, DType::i32, {setup.limits.units * beam_})),
      counts_before_(Tensor::empty(context, DType::i32, {2})),
      replay_(context, setup.limits.units),
      state_(model_.make_state(context, cache_limits(setup, model_))),
      units_(state_->cache, model.encoder_decoder != nullptr) {
  if (setup.record == nullptr) return;
  if (setup.limits.units != 1) throw Error("a search of several units cannot be recorded.");
  *setup.record = {.beam_size = static_cast<int>(beam_), .steps = {}};
}

Search::~Search() = default;

void Search::check_limits(const PlannedSentence& sentence) const {
  const SearchLimits& limits = setup_.limits;
  if (!sentence.options.sample && sentence.options.beam_size != beam_) {
    throw Error("a sentence with a beam size of " + std::to_string(sentence.options.beam_size) +
                " cannot enter a search with one of " + std::to_string(beam_) + ".");
  }
  if (sentence.options.sample && beam_ != 1) {
    throw Error("a sampled sentence cannot enter a search with a beam.");
  }
  const auto need_at_most = [](std::int64_t value, std::int64_t most, const char* things) {
    if (value <= most) return;
    throw Error("a sentence needs " + std::to_string(value) + " " + things +
                ", but this search has " + std::to_string(most) + " in all.");
  };
  need_at_most(sentence.sample_count(), limits.units, "units");
  need_at_most(sentence.max_length, limits.max_tokens, "tokens");
  const nn::DecoderCache& cache = state_->cache;
  need_at_most(
      sentence.sample_count() * cache.reserved_slots({.prompt = sentence.prompt,
                                                      .max_length = sentence.max_tokens_read()}),
      cache.limits().slots, "slots of the cache");
  need_at_most(sentence.source_length, std::min(limits.source_length, limits.source_rows),
               "rows for its source");
}

std::vector<SearchUnits::Sentence> Search::planned(const SearchRequest& request) const {
  std::vector<Sentence> sentences;
  for (PlannedSentence& sentence : plan_request(generating_, request, setup_.tokens)) {
    check_limits(sentence);
    sentences.push_back({std::move(sentence)});
  }
  return sentences;
}

Admission Search::admit(const SearchRequest& request) {
  std::vector<Sentence> sentences = planned(request);
  if (sentences.empty()) return {};
  release_finished();
  if (active_ == 0) restart();
  Admission admission = units_.reserve(sentences);
  if (!admission.refusal.empty()) return admission;
  enter(request, sentences);
  admission.ids = units_.add(std::move(sentences));
  return admission;
}

// An empty search starts where captured steps start.
void Search::restart() {
  if (swapped_) {
    swap_buffers();
    copy(next_hypotheses_.counts, current_.counts);
  }
  state_->cache.reset_buffers();
}

void Search::enter(const SearchRequest& request, std::vector<Sentence>& sentences) {
  std::vector<std::int64_t> entering;
  StepKind kind;
  for (const Sentence& sentence : sentences) {
    for (std::int64_t i = 0; i < sentence.sample_count(); ++i) {
      const std::int64_t u = entering.emplace_back(sentence.units[index(i)]);
      const SearchOptions& options = sentence.options;
      options_[u] = {.stream = sentence.number * sentence.sample_count() + i,
                     .seed = options.seed,
                     .temperature = options.temperature,
                     .top_p = options.top_p,
                     .top_k = options.top_k,
                     .sample = options.sample ? 1 : 0,
                     .prefix_length = static_cast<std::int32_t>(sentence.prefix.size()),
                     .min_length = static_cast<std::int32_t>(
                         setup_.tokens.end == kNoToken ? 0 : options.min_length),
                     .max_length = static_cast<std::int32_t>(sentence.max_length),
                     .no_repeat_ngram = options.no_repeat_ngram,
                     .max_repeats = options.max_repeats};
      phrases_.set(u, packed(sentence.phrases));
      add_kind(kind, u);
      state_->cache.provide_slots(u, sentence.prompt);
    }
  }
  state_->cache.publish();
  std::vector<std::int64_t> sorted = entering;
  std::ranges::sort(sorted);
  for_each_run(sorted, [&](std::int64_t first, std::int64_t count) {
    options_.upload(first, count);
    phrases_.upload(first, count);
    finished_.clear(first, count);
  });
  if (request.source) {
    std::vector<std::int64_t> memory_begin;
    memory_begin.reserve(sentences.size());
    for (const Sentence& sentence : sentences) memory_begin.push_back(sentence.memory_begin);
    generating_.encoder_decoder->add_sources(*state_, *request.source, memory_begin);
  }
  copy(current_.counts, counts_before_);
  const std::int64_t first_parent = state_->cache.next_first_row();
  const Tensor hidden = model_.step(*state_, first_tokens(sentences));
  const auto count = static_cast<std::int64_t>(entering.size());
  choose(hidden, {.units = count, .entering = true, .first_parent = first_parent, .kind = kind});
  ++steps_;
  active_ += count;  // some may have finished already; the next step tells
}

// The start token, if there is one, and the prefix of each unit; its hypothesis so far is the
// prefix.
nn::StepTokens Search::first_tokens(std::span<const Sentence> sentences) {
  Tokens ids, history;
  std::vector<std::int32_t> offsets{0}, units, lengths, sources;
  std::int64_t max_prompt = 0;
  for (const Sentence& sentence : sentences) {
    max_prompt = std::max(max_prompt, sentence.prompt);
    for (const std::int64_t u : sentence.units) {
      if (setup_.tokens.start != kNoToken) ids.push_back(setup_.tokens.start);
      ids.insert(ids.end(), sentence.prefix.begin(), sentence.prefix.end());
      history.insert(history.end(), sentence.prefix.begin(), sentence.prefix.end());
      history.resize(index(static_cast<std::int64_t>(units.size() + 1) * stride_), 0);
      offsets.push_back(static_cast<std::int32_t>(ids.size()));
      units.push_back(static_cast<std::int32_t>(u));
      lengths.push_back(static_cast<std::int32_t>(sentence.prefix.size()));
      sources.push_back(static_cast<std::int32_t>(sentence.source));
    }
  }
  const std::int64_t count = std::ssize(units), tokens = std::ssize(ids);
  ids.resize(index(nn::decode_capacity(tokens)), 0);
  // One copy to the device for all of them.
  std::vector<std::int32_t> numbers;
  for (const auto* part : {&ids, &units, &lengths, &sources, &offsets, &history}) {
    numbers.insert(numbers.end(), part->begin(), part->end());
  }
  const Tensor all = from_host(context_, numbers, {std::ssize(numbers)});
  std::int64_t taken = 0;
  const auto take = [&](const std::vector<std::int32_t>& values) {
    taken += std::ssize(values);
    return all.flat_slice(taken - std::ssize(values), {std::ssize(values)});
  };
  nn::StepTokens first{.hypotheses = count, .tokens = tokens, .max_length = max_prompt};
  first.ids = take(ids);
  first.units = entering_.unit = take(units);
  entering_.length = take(lengths);
  first.sources = take(sources);
  const Tensor first_token = take(offsets);
  if (max_prompt > 1) first.offsets = first_token;
  entering_.tokens = take(history);
  fill(entering_.token_scores.rows(0, count), 0);
  return first;
}

nn::StepTokens Search::next_tokens(std::int64_t units, bool counted) const {
  const std::int64_t rows = units * beam_;
  return {.hypotheses = rows,
          .tokens = rows,
          .max_length = counted ? 0 : units_.max_length_after_next_step(),
          .active = counted ? current_.counts.flat_slice(0, {1}) : Tensor(),
          .ids = next_tokens_.flat_slice(0, {nn::decode_capacity(rows)}),
          .parents = parents_,
          .units = current_.unit};
}

std::int64_t Search::step(std::int64_t max_steps) {
  const std::int64_t steps = std::min(max_steps, units_.steps_left());
  std::int64_t steps_taken = 0;
  if (!replays()) {
    active_ = to_host<std::int32_t>(current_.counts)[0];
    release_finished();
    if (active_ > 0 && steps > 0) {
      provide_slots(1);
      take_step(active_, false);
      steps_taken = 1;
      active_ = to_host<std::int32_t>(current_.counts)[0];
    }
  } else if (steps > 0) {
    const StepReplay::Result replayed = replay_steps(steps);
    steps_taken = replayed.steps;
    active_ = replayed.active;
  } else {
    active_ = 0;  // units that still run have finished in their first step
  }
  steps_ += steps_taken;
  units_.advance(steps_taken);
  release_finished();
  return active_;
}

void Search::provide_slots(std::int64_t steps) {
  units_.provide_slots(steps);
  state_->cache.publish();
}

StepReplay::Result Search::replay_steps(std::int64_t steps) {
  provide_slots(steps);
  if (model_.prepare_replay(*state_)) replay_.forget();
  const auto skip = [&](std::int64_t skipped) {
    if (skipped % 2 != 0) swap_buffers();
    state_->cache.skip_steps(skipped);
  };
  return replay_.run({.take = [&](std::int64_t units) { take_step(units, true); },
                      .skip = skip,
                      .swapped = swapped_,
                      .kind = kind_of_units().number(),
                      .steps_before = steps_,
                      .active = active_,
                      .max_steps = steps});
}

// One token for each active unit. `counted`: their number is read from device memory.
void Search::take_step(std::int64_t units, bool counted) {
  choose(model_.step(*state_, next_tokens(units, counted)),
         {.units = units, .width = beam_, .counted = counted, .kind = kind_of_units()});
  swap_buffers();
}

void Search::swap_buffers() {
  std::swap(current_, next_hypotheses_);
  swapped_ = !swapped_;
}

Search::StepKind Search::kind_of_units() const {
  StepKind kind;
  units_.for_each_running([&](std::int64_t u) { add_kind(kind, u); });
  return kind;
}

void Search::add_kind(StepKind& kind, std::int64_t unit) const {
  kind.add(options_[unit]);
  kind.any_phrases = kind.any_phrases || phrases_.has_phrases(unit);
}

// From the hidden rows of the newest tokens to the hypotheses that continue.
void Search::choose(const Tensor& hidden, const StepRows& step) {
  const bool recorded = setup_.record != nullptr;
  const bool needs_scores = step.kind.samples || step.kind.any_phrases || recorded;
  const Variable table = needs_scores ? Variable() : model_.output_table();
  const Tensor scores = table.defined() ? Tensor() : model_.next_scores(hidden);
  const std::int64_t rows = step.units * step.width;
  const Tensor log_probs =
      Tensor::empty(context_, accumulator_type(hidden.dtype()), {rows, candidates_});
  const Tensor ids = Tensor::empty(context_, DType::i32, {rows, candidates_});
  const ActiveHypotheses& from = step.entering ? entering_ : current_;
  const ActiveHypotheses& to = step.entering ? current_ : next_hypotheses_;
  const Tensor& counts_from = step.entering ? counts_before_ : current_.counts;
  const kernels::StepCounts counts{
      .active = step.counted ? counts_from.data<std::int32_t>() : nullptr,
      .steps = counts_from.data<std::int32_t>() + 1,
      .width = step.width};
  const DecoderTokens& tokens = setup_.tokens;
  const std::int64_t others = suppressed_.defined() ? suppressed_.elements() : 0;
  std::optional<Considered> considered;
  if (recorded) {
    considered = Considered{.first_parent = step.first_parent,
                            .log_probs = log_probs,
                            .ids = ids,
                            .scores = to_host<double>(from.score.flat_slice(0, {rows})),
                            .finished = finished_count(),
                            .to = &to};
  }
  dispatch(log_probs, [&]<class T>(auto& ctx) {
    T* const logits = scores.defined() ? scores.data<T>() : nullptr;
    const kernels::BanTokens<T> bans{
        .rows = rows,
        .vocabulary = model_.target_vocabulary(),
        .stride = stride_,
        .suppressed_token = tokens.suppressed.empty() ? kNoToken : tokens.suppressed.front(),
        .suppressed_count = others,
        .suppressed = others > 0 ? suppressed_.data<std::int32_t>() : nullptr,
        .end_token = tokens.end,
        .counts = counts,
        .hypotheses = from.rows(),
        .options = options_.data(),
        .any_ngram = step.kind.any_ngram,
        .max_banned = step.kind.max_banned,
        .logits = logits,
        .banned = banned_.data<double>()};
    const kernels::TopTokens<T> top{.rows = rows,
                                    .vocabulary = bans.vocabulary,
                                    .count = candidates_,
                                    .logits = logits,
                                    .banned = banned_.data<double>(),
                                    .log_probs = log_probs.data<Accumulator<T>>(),
                                    .ids = ids.data<std::int32_t>()};
    const kernels::BeamStep<Accumulator<T>> beam_step{
        .units = step.units,
        .width = step.width,
        .beam = beam_,
        .candidates = candidates_,
        .stride = stride_,
        .counts = counts,
        .end_token = tokens.end,
        .log_probs = log_probs.data<Accumulator<T>>(),
        .ids = ids.data<std::int32_t>(),
        .options = options_.data(),
        .from = from.rows(),
        .to = to.rows(),
        .finished = finished_.rows(),
        .first_unit = step.entering ? counts_before_.data<std::int32_t>() : nullptr,
        .first_parent = step.first_parent,
        .parents = parents_.data<std::int32_t>(),
        .next = next_tokens_.data<std::int32_t>(),
        .active = to.counts.data<std::int32_t>(),
        .steps = to.counts.data<std::int32_t>() + 1,
        .signal = replay_.signal_slots()};
    if constexpr (std::is_same_v<T, Accumulator<T>>) {
      if (table.defined()) return next_hypotheses(hidden, table, {bans, top}, beam_step);
      // A search with a beam, which phrases need, has no units that sample.
      if (step.kind.any_phrases) {
        return phrase_hypotheses(context_, phrases_.data(), {bans, top}, beam_step);
      }
    }
    if (!step.kind.samples) {
      kernels::run(ctx, kernels::TopAllowedTokens<T>{bans, top});
    } else {
      kernels::run(ctx, bans);
      if (step.kind.takes_likeliest) kernels::run(ctx, top);
      kernels::run(ctx, kernels::SampleTokens<T>{.rows = rows,
                                                 .vocabulary = bans.vocabulary,
                                                 .counts = counts,
                                                 .hypotheses = from.rows(),
                                                 .options = options_.data(),
                                                 .logits = logits,
                                                 .banned = banned_.data<double>(),
                                                 .log_probs = log_probs.data<Accumulator<T>>(),
                                                 .ids = ids.data<std::int32_t>()});
    }
    kernels::run(ctx, beam_step);
  });
  if (considered) record(*considered);
}

// Of the first unit.
std::int32_t Search::finished_count() const {
  std::vector<std::int8_t> buffer;
  return finished_.download(buffer).count[0];
}

void Search::record(const Considered& considered) const {
  using Outcome = BeamCandidate::Outcome;
  const std::vector<double> log_probs = to_host_f64(considered.log_probs);
  const std::vector<std::int32_t> ids = to_host<std::int32_t>(considered.ids);
  std::vector<BeamCandidate> candidates;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::size_t row = i / index(candidates_);
    const double score = considered.scores[row] + log_probs[i];
    if (!std::isfinite(score)) continue;
    candidates.push_back({.parent = static_cast<std::int64_t>(row),
                          .token = ids[i],
                          .log_probability = log_probs[i],
                          .score = score});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.score > b.score; });
  // The rows that continue, as the step wrote them.
  const bool active = to_host<std::int32_t>(considered.to->counts)[0] > 0;
  const std::vector<std::int32_t> parents = to_host<std::int32_t>(parents_),
                                  tokens = to_host<std::int32_t>(next_tokens_);
  const std::vector<double> scores = to_host<double>(considered.to->score);
  const auto row_of = [&](const BeamCandidate& candidate) -> std::int64_t {
    for (std::int64_t row = 0; active && row < beam_; ++row) {
      const std::size_t r = index(row);
      if (std::isfinite(scores[r]) && tokens[r] == candidate.token &&
          parents[r] - considered.first_parent == candidate.parent) {
        return row;
      }
    }
    return -1;
  };
  std::vector<std::int8_t> buffer;
  const kernels::FinishedRows finished = finished_.download(buffer);
  const auto finished_as = [&](const BeamCandidate& candidate) -> std::optional<Outcome> {
    for (std::int32_t entry = considered.finished; entry < finished.count[0]; ++entry) {
      const bool ended = finished.ended_by_eos[entry] != 0;
      if (finished.score[entry] == candidate.score &&
          ended == (candidate.token == setup_.tokens.end)) {
        return ended ? Outcome::ended : Outcome::cut;
      }
    }
    return std::nullopt;
  };
  std::int64_t rank = 0;
  for (BeamCandidate& candidate : candidates) {
    candidate.row = row_of(candidate);
    const bool is_end = candidate.token == setup_.tokens.end;
    if (candidate.row >= 0) {
      candidate.outcome = Outcome::kept;
    } else if (const std::optional<Outcome> outcome = finished_as(candidate)) {
      candidate.outcome = *outcome;
    } else if (!active && rank < beam_) {
      candidate.outcome = Outcome::search_done;
    } else {
      candidate.outcome = is_end ? Outcome::end_outranked : Outcome::outranked;
    }
    ++rank;
  }
  setup_.record->steps.push_back(std::move(candidates));
}

// Units that have finished give back what they hold.
void Search::release_finished() {
  if (units_.running_count() <= active_) return;
  if (active_ == 0) {
    units_.mark_all_done();
  } else {
    units_.mark_done(finished_.download_done_flags());
  }
}

std::vector<FoundSentence> Search::collect() {
  std::vector<FoundSentence> found;
  if (!units_.any_sentence_finished()) return found;
  std::vector<std::int8_t> buffer;
  const kernels::FinishedRows rows = finished_.download(buffer);
  units_.remove_finished_sentences([&](std::int64_t id, const Sentence& sentence) {
    found.push_back({.id = id, .hypotheses = results(sentence, rows)});
  });
  return found;
}

Hypotheses Search::results(const Sentence& sentence, const kernels::FinishedRows& rows) const {
  Hypotheses found;
  const std::int64_t prefix = std::ssize(sentence.prefix);
  for (const std::int64_t u : sentence.units) {
    if (rows.count[u] == 0) return {};
    for (std::int64_t entry = u * beam_; entry < u * beam_ + rows.count[u]; ++entry) {
      const std::int32_t* tokens = rows.tokens + entry * stride_;
      const float* token_scores = rows.token_scores + entry * stride_;
      Hypothesis hypothesis{.log_probability = rows.score[entry],
                            .ended_by_eos = rows.ended_by_eos[entry] != 0};
      hypothesis.tokens.assign(tokens, tokens + rows.length[entry]);
      const std::int64_t scored = rows.length[entry] + (hypothesis.ended_by_eos ? 1 : 0);
      hypothesis.token_scores.assign(token_scores, token_scores + scored);
      hypothesis.score = rows.score[entry] /
                         std::pow(static_cast<double>(scored - prefix), sentence.options.normalize);
      found.push_back(std::move(hypothesis));
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  if (found.size() > index(sentence.options.n_best)) found.resize(index(sentence.options.n_best));
  return found;
}

std::optional<Hypothesis> Search::current_hypothesis(std::int64_t id) const {
  const Sentence& sentence = units_.sentence(id);
  if (beam_ != 1 || sentence.units.size() != 1) {
    throw Error("only a sentence with one hypothesis can be watched.");
  }
  const std::vector<std::int32_t> counts = to_host<std::int32_t>(current_.counts);
  const std::vector<std::int32_t> units = to_host<std::int32_t>(current_.unit);
  const auto end = units.begin() + counts[0];
  const auto found = std::find(units.begin(), end, static_cast<std::int32_t>(sentence.units[0]));
  if (found == end) return std::nullopt;
  const std::int64_t row = found - units.begin();
  const std::int64_t length = to_host<std::int32_t>(current_.length.flat_slice(row, {1}))[0];
  Hypothesis hypothesis{.log_probability = to_host<double>(current_.score.flat_slice(row, {1}))[0]};
  hypothesis.tokens = to_host<std::int32_t>(current_.tokens.flat_slice(row * stride_, {length}));
  hypothesis.token_scores =
      to_host<float>(current_.token_scores.flat_slice(row * stride_, {length}));
  hypothesis.score = hypothesis.log_probability /
                     std::pow(static_cast<double>(length - std::ssize(sentence.prefix)),
                              sentence.options.normalize);
  return hypothesis;
}

void Search::clear() {
  units_.clear();
  active_ = 0;
  const std::vector<std::int32_t> counts{0, static_cast<std::int32_t>(steps_)};
  copy_from_host(std::span<const std::int32_t>(counts), current_.counts);
}

}  // namespace nunchi
