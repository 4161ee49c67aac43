#include "nunchi/decoding/search.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "nunchi/base/error.h"
#include "nunchi/decoding/search_memory.h"
#include "nunchi/decoding/search_units.h"
#include "nunchi/kernels/memory.h"
#include "nunchi/kernels/search.h"
#include "nunchi/ops/decode/next_hypotheses.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

// The search of one batch after another that fit into the same memory.
class Searcher::Search {
  // Steps that are replayed before anybody looks.
  static constexpr std::int64_t kMostReplayed = 64, kMostWatched = 8;

 public:
  Search(const Searched& searched, const SearchOptions& options, ContextBase& context, Units units)
      : searched_(searched),
        model_(searched.model()),
        options_(options),
        context_(context),
        units_(std::move(units)),
        candidates_(units_.beam == 1 ? 1 : std::min(units_.beam + 1, model_.target_vocabulary())),
        now_(context_, units_.count * units_.beam, units_.stride),
        then_(context_, units_.count * units_.beam, units_.stride),
        finished_(context_, units_),
        source_of_unit_(Tensor::empty(context_, DType::i32, {units_.count})),
        stream_of_unit_(Tensor::empty(context_, DType::i64, {units_.count})),
        max_length_(Tensor::empty(context_, DType::i32, {units_.count})),
        prefix_length_(Tensor::empty(context_, DType::i32, {units_.count})),
        banned_(Tensor::empty(context_, DType::f64, {units_.count * units_.beam})),
        next_(zeros(context_, DType::i32, {nn::decode_capacity(units_.count * units_.beam)})),
        parents_(Tensor::empty(context_, DType::i32, {units_.count * units_.beam})),
        sentences_(Tensor::empty(context_, DType::i32, {units_.count * units_.beam})),
        signal_(context_.make_host_signal()) {}

  std::int64_t stride() const { return units_.stride; }
  bool fits(const ContextBase& context, const Units& units) const {
    return &context == &context_ && units.count == units_.count && units.stride <= units_.stride;
  }

  // `units` fit, and have the stride of the memory.
  std::vector<Hypotheses> run(const SearchInput& input, Units units) {
    units_ = std::move(units);
    set_tokens(input.tokens);
    begin();
    start(input);
    Step step{.active = units_.count, .width = 1};
    advance(first_tokens(), step);
    step = {.active = units_.count, .width = units_.beam, .generated = 1};
    // Replayed steps count on the device; one that is not needs to know.
    if (!context_.replays() || units_.most_generated() < step.generated + 2) {
      step.active = active_units(step.generated);
    }
    while (step.active > 0) {
      if (input.watch && !go_on(input.watch)) return {{so_far()}};
      const std::int64_t replayed = replay(step, input.watch ? kMostWatched : kMostReplayed);
      if (replayed == 0) advance(next_tokens(step), step);
      step.generated += std::max<std::int64_t>(replayed, 1);
      step.active = active_units(step.generated);
    }
    return results(input.source ? input.source->rows().sentences : std::ssize(input.prefixes));
  }

 private:
  struct Step {
    std::int64_t active = 0;     // units
    std::int64_t width = 1;      // rows of each
    std::int64_t generated = 0;  // tokens beyond the prefix
    bool replayed = false;       // these are bounds; the numbers stand in device memory
  };

  void set_tokens(const DecoderTokens& tokens) {
    if (tokens == tokens_) return;
    noted_.clear();
    tokens_ = tokens;
    // Devices are fastest when one token is suppressed, the usual case.
    const std::size_t more = tokens_.suppressed.empty() ? 0 : tokens_.suppressed.size() - 1;
    const auto others = std::span(tokens_.suppressed).last(more);
    suppressed_ = more == 0 ? Tensor() : device_copy(Tokens(others.begin(), others.end()));
  }

  // The model's state, in the memory of the batch before where it fits.
  void start(const SearchInput& input) {
    if (searched_.language_model != nullptr) {
      if (state_ != nullptr) return searched_.language_model->restart(*state_);
      state_ = searched_.language_model->start(context_);
      return;
    }
    const TranslationModel& model = *searched_.encoder_decoder;
    if (state_ != nullptr && model.restart(*state_, *input.source)) return;
    noted_.clear();
    state_ = model.start(*input.source);
  }

  // The units' numbers go to the device; nothing is finished.
  void begin() {
    if (turned_) turn();
    put(units_.source, source_of_unit_);
    put(units_.stream, stream_of_unit_);
    put(units_.max_length, max_length_);
    put(units_.prefix_length, prefix_length_);
    fill(now_.score, 0);
    finished_.clear();
    if (signal_ != nullptr) signal_->clear();
  }

  void turn() {
    std::swap(now_, then_);
    turned_ = !turned_;
  }

  // One token more for each hypothesis.
  void advance(const nn::StepTokens& tokens, const Step& step) {
    choose(model_.step(*state_, tokens), step);
  }

  // Takes several steps at once where the device can, until many hypotheses are done. Returns how
  // many; 0: it cannot.
  std::int64_t replay(Step step, std::int64_t at_once) {
    const std::int64_t left = units_.most_generated() - step.generated;
    if (!context_.replays() || left < 2) return 0;
    std::int64_t active = step.active;
    step.active = noted_size(active);
    const std::int64_t most = std::min(left, at_once), rows = step.active * step.width;
    const bool moved =
        model_.reserve(*state_, {.steps = most, .hypotheses = rows, .longest = most_tokens()});
    if (moved) noted_.clear();
    step.replayed = true;
    const std::int64_t few = step.active / 2;
    std::int64_t done = 0;
    while (most - done >= 2 && active > few) {
      const std::int64_t steps = steps_at_once(active, most - done);
      steps_noted(step, steps).start();
      done += steps;
      // After the last but one: the last keeps the device busy until more is started.
      if (done < most) active = active_units(step.generated + done - 1);
    }
    // An odd one is the last of all.
    if (done < most && active > few) {
      advance(next_tokens(step), step);
      ++done;
    }
    return done;
  }

  // Steps are noted for all units, for half of them, a quarter and so on: whatever the order in
  // which sentences end, a few sizes serve.
  std::int64_t noted_size(std::int64_t active) const {
    std::int64_t size = units_.count;
    while (size > 1 && (size + 1) / 2 >= active) size = (size + 1) / 2;
    return size;
  }

  // A sentence that has ended waits for the steps that were started with it; while none has, many
  // are unlikely to end at once.
  std::int64_t steps_at_once(std::int64_t active, std::int64_t most) const {
    constexpr std::int64_t kManyUnits = 8, kManySteps = 8;
    static_assert(kManySteps <= HostSignal::kSlots);  // steps that the host has not waited for
    return active == units_.count && active >= kManyUnits && most >= kManySteps ? kManySteps : 2;
  }

  // Hypotheses go from one memory to the other and back: an even number of steps leaves all where
  // it was.
  ContextBase::Replay& steps_noted(const Step& step, std::int64_t steps) {
    std::unique_ptr<ContextBase::Replay>& noted = noted_[{step.active * step.width, steps}];
    if (noted == nullptr) {
      noted = context_.capture([&] {
        for (std::int64_t i = 0; i < steps; ++i) advance(next_tokens(step), step);
      });
    }
    return *noted;
  }

  // Tokens that the decoder sees of a hypothesis at most, <s> included and the last one not. Of the
  // memory, not of the batch: it is the same for all batches that share replayed steps.
  std::int64_t most_tokens() const { return std::min(units_.stride, model_.max_length()) - 1; }

  nn::StepTokens next_tokens(const Step& step) const {
    const std::int64_t rows = step.active * step.width;
    return {.hypotheses = rows,
            .tokens = rows,
            .longest = most_tokens(),
            .room = units_.count * units_.beam,
            .active = step.replayed ? now_.counts.part(0, {1}) : Tensor(),
            .width = step.width,
            .ids = next_.part(0, {nn::decode_capacity(rows)}),
            .parents = parents_,
            .sentences = sentences_};
  }

  // Once so many tokens were generated, the latest or the one before it.
  std::int64_t active_units(std::int64_t generated) const {
    if (signal_ != nullptr) return signal_->wait(static_cast<std::int32_t>(generated));
    return to_host<std::int32_t>(now_.counts)[0];
  }

  template <class T>
  Tensor device_copy(const std::vector<T>& values) const {
    return from_host(context_, values, {static_cast<std::int64_t>(values.size())});
  }
  template <class T>
  static void put(const std::vector<T>& values, const Tensor& to) {
    copy_from_host(std::span<const T>(values), to);
  }

  // The start token, if there is one, and the prefix of each unit; its hypothesis so far is the
  // prefix.
  nn::StepTokens first_tokens() {
    Tokens ids, history(index(units_.count * units_.stride), 0);
    std::vector<std::int32_t> offsets{0}, numbers;
    std::int64_t most = 0;
    for (std::int64_t u = 0; u < units_.count; ++u) {
      const auto prefix = units_.prefix[index(u)];
      if (tokens_.start != kNoToken) ids.push_back(tokens_.start);
      ids.insert(ids.end(), prefix.begin(), prefix.end());
      std::copy(prefix.begin(), prefix.end(), history.begin() + u * units_.stride);
      offsets.push_back(static_cast<std::int32_t>(ids.size()));
      numbers.push_back(static_cast<std::int32_t>(u));
      most = std::max<std::int64_t>(most, offsets.back() - offsets[index(u)]);
    }
    check_tokens(ids);
    copy_from_host(std::span<const std::int32_t>(history), now_.tokens.rows(0, units_.count));
    fill(now_.token_scores, 0);
    copy_from_host(std::span<const std::int32_t>(numbers), now_.unit.part(0, {units_.count}));
    const std::int64_t count = static_cast<std::int64_t>(ids.size());
    ids.resize(index(nn::decode_capacity(count)), 0);
    return {.hypotheses = units_.count,
            .tokens = count,
            .most = most,
            .longest = most_tokens(),
            .room = units_.count * units_.beam,
            .ids = device_copy(ids),
            .sentences = source_of_unit_,
            .offsets = most > 1 ? device_copy(offsets) : Tensor()};
  }

  void check_tokens(const Tokens& ids) const {
    for (const std::int32_t id : ids) {
      if (id < 0 || id >= model_.target_vocabulary()) {
        throw Error("the prefix has a token " + std::to_string(id) + " in a vocabulary of " +
                    std::to_string(model_.target_vocabulary()) + ".");
      }
    }
  }

  // From what the model makes of the newest tokens to the hypotheses that go on.
  void choose(const Tensor& hidden, const Step& step) {
    kernels::StepNow now;
    if (step.replayed) {
      now = {.active = now_.counts.data<std::int32_t>(),
             .generated = now_.counts.data<std::int32_t>() + 1,
             .width = step.width};
    }
    const std::int64_t rows = step.active * step.width, vocabulary = model_.target_vocabulary();
    const std::int64_t suppressed = suppressed_.defined() ? suppressed_.elements() : 0;
    const Variable table = options_.sample ? Variable() : model_.output_table();
    const Tensor scores = table.defined() ? Tensor() : model_.next_scores(hidden);
    const Tensor log_probs = Tensor::empty(context_, summed(hidden.dtype()), {rows, candidates_});
    const Tensor ids = Tensor::empty(context_, DType::i32, {rows, candidates_});
    dispatch(log_probs, [&]<class T>(auto& ctx) {
      T* const logits = scores.defined() ? scores.data<T>() : nullptr;
      const kernels::BanTokens<T> bans{
          .rows = rows,
          .vocabulary = vocabulary,
          .stride = units_.stride,
          .begin_token = tokens_.suppressed.empty() ? kNoToken : tokens_.suppressed.front(),
          .end_token = tokens_.end,
          .suppressed_count = suppressed,
          .suppressed = suppressed == 0 ? nullptr : suppressed_.data<std::int32_t>(),
          .generated = step.generated,
          .now = now,
          .min_length = tokens_.end == kNoToken ? 0 : options_.min_length,
          .no_repeat_ngram = options_.no_repeat_ngram,
          .max_repeats = options_.max_repeats,
          .hypotheses = now_.rows(),
          .prefix_length = prefix_length_.data<std::int32_t>(),
          .logits = logits,
          .banned = banned_.data<double>()};
      const kernels::TopAllowed<T> allowed{.bans = bans,
                                           .top = {.rows = rows,
                                                   .vocabulary = vocabulary,
                                                   .count = candidates_,
                                                   .logits = logits,
                                                   .banned = banned_.data<double>(),
                                                   .log_probs = log_probs.data<Summed<T>>(),
                                                   .ids = ids.data<std::int32_t>()}};
      const kernels::BeamStep<Summed<T>> beam_step =
          beam_step_of<Summed<T>>(step, now, log_probs, ids);
      if constexpr (std::is_same_v<T, Summed<T>>) {
        if (table.defined()) return next_hypotheses(hidden, table, allowed, beam_step);
      }
      if (options_.sample) {
        kernels::run(ctx, bans);
        kernels::run(ctx,
                     kernels::SampleTokens<T>{.rows = rows,
                                              .vocabulary = vocabulary,
                                              .temperature = options_.temperature,
                                              .top_k = options_.top_k,
                                              .top_p = options_.top_p,
                                              .seed = options_.seed,
                                              .position = static_cast<std::int32_t>(step.generated),
                                              .now = now,
                                              .unit = now_.unit.data<std::int32_t>(),
                                              .stream = stream_of_unit_.data<std::int64_t>(),
                                              .logits = logits,
                                              .banned = banned_.data<double>(),
                                              .log_probs = log_probs.data<Summed<T>>(),
                                              .ids = ids.data<std::int32_t>()});
      } else {
        kernels::run(ctx, allowed);
      }
      kernels::run(ctx, beam_step);
    });
    turn();
  }

  // From the candidates of each row to the hypotheses that go on.
  template <class T>
  kernels::BeamStep<T> beam_step_of(const Step& step, const kernels::StepNow& now,
                                    const Tensor& log_probs, const Tensor& ids) const {
    return {.units = step.active,
            .width = step.width,
            .beam = units_.beam,
            .candidates = candidates_,
            .stride = units_.stride,
            .generated = step.generated,
            .now = now,
            .end_token = tokens_.end,
            .log_probs = log_probs.data<T>(),
            .ids = ids.data<std::int32_t>(),
            .prefix_length = prefix_length_.data<std::int32_t>(),
            .max_length = max_length_.data<std::int32_t>(),
            .from = now_.rows(),
            .to = then_.rows(),
            .finished = finished_.rows(),
            .parents = parents_.data<std::int32_t>(),
            .next = next_.data<std::int32_t>(),
            .row_source = sentences_.data<std::int32_t>(),
            .unit_source = source_of_unit_.data<std::int32_t>(),
            .active = then_.counts.data<std::int32_t>(),
            .generated_next = then_.counts.data<std::int32_t>() + 1,
            .signal = signal_ != nullptr ? signal_->slots() : nullptr};
  }

  // Tokens of the one hypothesis of a search that is watched, as it is now; 0: it is done.
  std::int64_t length_now() const {
    if (units_.count != 1 || units_.beam != 1) {
      throw Error("only a search for one hypothesis can be watched.");
    }
    const std::vector<std::int32_t> counts = to_host<std::int32_t>(now_.counts);
    return counts[0] == 0 ? 0 : units_.prefix_length[0] + counts[1];
  }

  bool go_on(const SearchWatch& watch) const {
    const std::int64_t length = length_now();
    return length == 0 || watch(to_host<std::int32_t>(now_.tokens.part(0, {length})));
  }

  Hypothesis so_far() const {
    const std::int64_t length = length_now();
    Hypothesis one{.log_probability = to_host<double>(now_.score.part(0, {1}))[0]};
    one.tokens = to_host<std::int32_t>(now_.tokens.part(0, {length}));
    one.token_scores = to_host<float>(now_.token_scores.part(0, {length}));
    const auto said = static_cast<double>(length - units_.prefix_length[0]);
    one.score = one.log_probability / std::pow(said, options_.normalize);
    return one;
  }

  std::vector<Hypotheses> results(std::int64_t sentences) const {
    std::vector<std::int8_t> room;
    const kernels::FinishedRows rows = finished_.download(room);
    std::vector<Hypotheses> found(index(sentences));
    for (std::int64_t u = 0; u < units_.count; ++u) {
      if (rows.count[u] == 0) throw Error("the model's scores are not numbers.");
      const std::int64_t prefix = units_.prefix_length[index(u)];
      for (std::int64_t at = u * units_.beam; at < u * units_.beam + rows.count[u]; ++at) {
        const std::int32_t* tokens = rows.tokens + at * units_.stride;
        const float* token_scores = rows.token_scores + at * units_.stride;
        Hypothesis one{.log_probability = rows.score[at], .ended = rows.ended[at] != 0};
        one.tokens.assign(tokens, tokens + rows.length[at]);
        const std::int64_t scored = rows.length[at] + (one.ended ? 1 : 0);
        one.token_scores.assign(token_scores, token_scores + scored);
        one.score =
            rows.score[at] / std::pow(static_cast<double>(scored - prefix), options_.normalize);
        found[index(units_.source[index(u)])].push_back(std::move(one));
      }
    }
    for (Hypotheses& each : found) {
      std::stable_sort(each.begin(), each.end(),
                       [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
      if (each.size() > index(options_.n_best)) each.resize(index(options_.n_best));
    }
    return found;
  }

  Searched searched_;
  const SequenceModel& model_;
  DecoderTokens tokens_;
  Tensor suppressed_;  // i32: all but the first of those tokens; undefined: there are none
  SearchOptions options_;
  ContextBase& context_;
  Units units_;
  std::int64_t candidates_;  // of each row
  RowMemory now_, then_;
  bool turned_ = false;  // they have changed places an odd number of times
  FinishedMemory finished_;
  Tensor source_of_unit_, stream_of_unit_, max_length_, prefix_length_;  // [units]
  Tensor banned_;                                                        // of the rows of a step
  Tensor next_, parents_, sentences_;                                    // of the rows that go on
  std::unique_ptr<HostSignal> signal_;  // the number of active units; may be null
  std::unique_ptr<SequenceModel::State> state_;
  // By rows at most and steps, to be replayed.
  std::map<std::pair<std::int64_t, std::int64_t>, std::unique_ptr<ContextBase::Replay>> noted_;
};

void SearchOptions::check() const {
  const auto need = [](bool holds, const std::string& what) {
    if (!holds) throw UsageError(what);
  };
  constexpr int kLargestBeam = 4096;
  need(beam_size >= 1 && beam_size <= kLargestBeam,
       "the beam size is a whole number from 1 to " + std::to_string(kLargestBeam) + ".");
  need(n_best >= 1 && n_best <= kLargestBeam, "n-best is a whole number from 1 to 4096.");
  need(sample || n_best <= beam_size, "n-best (" + std::to_string(n_best) +
                                          ") cannot be larger than the beam size (" +
                                          std::to_string(beam_size) + ").");
  need(!sample || beam_size == 1, "sampling and a beam exclude each other.");
  need(std::isfinite(normalize) && normalize >= 0, "normalize is a number from 0 up.");
  need(std::isfinite(temperature) && temperature > 0, "the temperature is a number above 0.");
  need(top_p > 0 && top_p <= 1, "top-p is a number above 0 and up to 1.");
  need(top_k >= 0, "top-k is a whole number from 0 up.");
  need(min_length >= 0 && max_length >= 1 && min_length <= max_length,
       "the minimum length (" + std::to_string(min_length) +
           ") cannot be larger than the maximum (" + std::to_string(max_length) +
           "), nor can the maximum be 0.");
  need(no_repeat_ngram >= 0 && max_repeats >= 0, "limits on repetition are whole numbers from 0.");
}

Searcher::Searcher(const TranslationModel& model, const SearchOptions& options)
    : searched_{.encoder_decoder = &model}, options_(options) {
  options.check();
}
Searcher::Searcher(const LanguageModel& model, ContextBase& context, const SearchOptions& options)
    : searched_{.language_model = &model}, context_(&context), options_(options) {
  options.check();
}
Searcher::~Searcher() = default;

std::vector<Hypotheses> Searcher::operator()(const SearchInput& input) {
  if (input.source.has_value() != (searched_.encoder_decoder != nullptr)) {
    throw Error(input.source ? "a language model takes no source."
                             : "an encoder-decoder generates from a source, but got none.");
  }
  const std::size_t sentences =
      input.source ? input.source->rows().lengths.size() : input.prefixes.size();
  if (!input.prefixes.empty() && input.prefixes.size() != sentences) {
    throw Error(std::to_string(sentences) + " sentences came with " +
                std::to_string(input.prefixes.size()) + " prefixes.");
  }
  if (!input.numbers.empty() && input.numbers.size() != sentences) {
    throw Error(std::to_string(sentences) + " sentences came with " +
                std::to_string(input.numbers.size()) + " numbers.");
  }
  const auto is_empty = [](const Tokens& prefix) { return prefix.empty(); };
  if (input.tokens.start == kNoToken &&
      (input.prefixes.empty() || std::ranges::any_of(input.prefixes, is_empty))) {
    throw Error("a search without a start token has nothing to begin with: a prefix is empty.");
  }
  if (sentences == 0) return {};
  if (input.tokens.forced_first != kNoToken) return forced(input);
  ContextBase& context = input.source ? input.source->context() : *context_;
  Units units = make_units(searched_.model(), input, options_);
  if (search_ == nullptr || !context.replays() || !search_->fits(context, units)) {
    search_ = nullptr;  // gives its memory back first
    // Where steps are replayed, batches of about the same length share what was noted.
    constexpr std::int64_t kUnit = 32;
    if (context.replays()) units.stride = (units.stride + kUnit - 1) / kUnit * kUnit;
    search_ = std::make_unique<Search>(searched_, options_, context, units);
  }
  units.stride = search_->stride();
  try {
    return search_->run(input, std::move(units));
  } catch (...) {
    search_ = nullptr;
    throw;
  }
}

// The forced first token is the first of every prefix.
std::vector<Hypotheses> Searcher::forced(SearchInput input) {
  std::vector<Tokens> prefixes(input.source ? input.source->rows().lengths.size()
                                            : input.prefixes.size());
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    prefixes[i] = input.tokens.begun(input.prefixes.empty() ? Tokens() : input.prefixes[i]);
  }
  input.prefixes = prefixes;
  input.tokens.forced_first = kNoToken;
  return (*this)(input);
}

std::vector<Hypotheses> search(const TranslationModel& model, const SearchInput& input,
                               const SearchOptions& options) {
  return Searcher(model, options)(input);
}

std::vector<Hypotheses> search(const LanguageModel& model, ContextBase& context,
                               const SearchInput& input, const SearchOptions& options) {
  return Searcher(model, context, options)(input);
}

}  // namespace nunchi
