#include "nunchi/decoding/searcher.h"

#include <algorithm>

#include "nunchi/base/error.h"
#include "nunchi/device/work_progress.h"

namespace nunchi {
namespace {

// Maximum steps of one call of Search::step(), without and with a watch.
constexpr std::int64_t kSteps = 64, kWatchedSteps = 8;

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// The limits of a search that holds all of these sentences.
SearchLimits limits_of(std::span<const PlannedSentence> sentences, const SearchOptions& options,
                       const Ragged* source) {
  SearchLimits limits{.units = 0,
                      .beam_size = options.sample ? 1 : options.beam_size,
                      .max_tokens = 0,
                      .source_rows = source != nullptr ? source->capacity : 0,
                      .source_length = source != nullptr ? source->max_length : 0};
  for (const PlannedSentence& sentence : sentences) {
    limits.units += sentence.sample_count();
    limits.max_tokens = std::max(limits.max_tokens, sentence.max_length);
  }
  return limits;
}

// Reports the tokens of the longest hypothesis while a search runs.
class TokenProgress {
 public:
  explicit TokenProgress(const Search& search)
      : search_(search),
        progress_(search.context().cache<WorkProgress>()),
        first_step_(search.steps()) {}
  ~TokenProgress() { progress_.clear(); }
  TokenProgress(const TokenProgress&) = delete;
  TokenProgress& operator=(const TokenProgress&) = delete;

  void report() const {
    progress_.set({.stage = WorkProgress::Stage::generating,
                   .done = search_.steps() - first_step_ + 1,
                   .total = search_.setup().limits.max_tokens});
  }

 private:
  const Search& search_;
  WorkProgress& progress_;
  std::int64_t first_step_;  // gave each hypothesis its first token
};

bool fits(const SearchLimits& needed, const SearchLimits& limits) {
  return needed.units == limits.units && needed.beam_size == limits.beam_size &&
         needed.max_tokens <= limits.max_tokens && needed.source_rows <= limits.source_rows &&
         needed.source_length <= limits.source_length;
}

}  // namespace

Searcher::Searcher(const EncoderDecoder& model, const SearchOptions& options)
    : model_(model), options_(options) {
  options.check();
}
Searcher::Searcher(const LanguageModel& model, ContextBase& context, const SearchOptions& options)
    : model_(model), context_(&context), options_(options) {
  options.check();
}
Searcher::~Searcher() = default;

std::vector<Hypotheses> Searcher::operator()(const SearchInput& input) {
  const SearchRequest request{.source = input.source,
                              .prefixes = input.prefixes,
                              .phrases = input.phrases,
                              .numbers = input.numbers,
                              .options = std::span(&options_, 1)};
  const std::vector<PlannedSentence> sentences = plan_request(model_, request, input.tokens);
  if (sentences.empty()) return {};
  ContextBase& context = input.source ? input.source->context() : *context_;
  prepare(context, input, sentences);
  try {
    return run(request, input.watch);
  } catch (...) {
    search_ = nullptr;
    throw;
  }
}

// Makes a search that the sentences fit into. On devices that replay steps, keeps the previous
// search if they fit into it.
void Searcher::prepare(ContextBase& context, const SearchInput& input,
                       std::span<const PlannedSentence> sentences) {
  const Ragged* source = input.source ? &input.source->rows() : nullptr;
  SearchSetup setup{.limits = limits_of(sentences, options_, source),
                    .tokens = input.tokens,
                    .record = input.record};
  const bool reusable = search_ != nullptr && context.can_replay() && input.record == nullptr &&
                        search_->setup().record == nullptr && &search_->context() == &context &&
                        search_->setup().tokens == setup.tokens;
  if (reusable && fits(setup.limits, search_->setup().limits)) return;
  if (context.can_replay()) {
    // Lengths are rounded up so that batches of about the same length share captured steps.
    constexpr std::int64_t kLengthMultiple = 32;
    SearchLimits& limits = setup.limits;
    limits.max_tokens = rounded_up(limits.max_tokens + 1, kLengthMultiple) - 1;
    if (reusable && search_->setup().limits.units == limits.units) {
      const SearchLimits& previous = search_->setup().limits;
      limits.max_tokens = std::max(limits.max_tokens, previous.max_tokens);
      limits.source_rows = std::max(limits.source_rows, previous.source_rows);
      limits.source_length = std::max(limits.source_length, previous.source_length);
    }
  }
  search_ = nullptr;  // releases its memory before the next search allocates
  search_ = std::make_unique<Search>(model_, context, setup);
}

std::vector<Hypotheses> Searcher::run(const SearchRequest& request, const SearchWatch& watch) {
  const Admission admission = search_->admit(request);
  if (!admission.refusal.empty()) {
    throw Error(admission.refusal + " Use smaller batches or a lower maximum length.");
  }
  const std::int64_t first = admission.ids.front();
  const TokenProgress progress(*search_);
  if (!watch) {
    do {
      progress.report();
    } while (search_->step(kSteps) > 0);
  } else {
    do {
      progress.report();
      const std::optional<Hypothesis> current = search_->current_hypothesis(first);
      if (current && !watch(current->tokens)) {
        search_->clear();
        return {{*current}};
      }
    } while (search_->step(kWatchedSteps) > 0);
  }
  std::vector<Hypotheses> found(admission.ids.size());
  for (FoundSentence& sentence : search_->collect()) {
    if (sentence.hypotheses.empty()) throw Error("the model's scores are not numbers.");
    found[static_cast<std::size_t>(sentence.id - first)] = std::move(sentence.hypotheses);
  }
  return found;
}

std::vector<Hypotheses> search(const EncoderDecoder& model, const SearchInput& input,
                               const SearchOptions& options) {
  return Searcher(model, options)(input);
}

std::vector<Hypotheses> search(const LanguageModel& model, ContextBase& context,
                               const SearchInput& input, const SearchOptions& options) {
  return Searcher(model, context, options)(input);
}

}  // namespace nunchi
