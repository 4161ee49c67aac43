#include "nunchi/training/objectives/masked.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "nunchi/ops/decode/top_tokens.h"
#include "nunchi/ops/gather_rows.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/text/mask_symbol.h"
#include "nunchi/training/config/train_config.h"

namespace nunchi {
namespace {

// The operation number of these draws (base/random.h), distinct from those of a model's operations,
// which are small.
constexpr std::uint32_t kOperation = 0x80000001u;
enum class Purpose : std::uint32_t { choice, replacement };

philox::Words draw(const TextDraws& draws, Purpose purpose, std::size_t number) {
  return philox::bits({static_cast<std::uint32_t>(purpose), static_cast<std::uint32_t>(number),
                       draws.sentence, kOperation},
                      philox::key_of(draws.key));
}

// Chooses `selection_size` of the numbers from 0 to count - 1, ascending; all sets are equally
// likely.
std::vector<std::int32_t> choose(std::int64_t selection_size, std::size_t count,
                                 const TextDraws& draws) {
  std::vector<std::int32_t> chosen;
  philox::Words words{};
  for (std::size_t i = 0; i < count; ++i) {
    if (i % words.size() == 0) words = draw(draws, Purpose::choice, i / words.size());
    const auto missing =
        static_cast<std::uint64_t>(selection_size - static_cast<std::int64_t>(chosen.size()));
    // Uniform in [0, count - i).
    const std::uint64_t drawn = (std::uint64_t{words[i % words.size()]} * (count - i)) >> 32;
    if (drawn < missing) chosen.push_back(static_cast<std::int32_t>(i));
  }
  return chosen;
}

// The pieces of one word: positions [first, first + size) of a text.
struct Word {
  std::int32_t first, size;
};

// Takes words in random order and skips those that would exceed `max_tokens`.
std::vector<std::int32_t> choose_words(std::int64_t max_tokens, std::span<const Word> words,
                                       const TextDraws& draws) {
  std::vector<std::pair<std::uint64_t, std::size_t>> order;
  for (std::size_t w = 0; w < words.size(); ++w) {
    const philox::Words bits = draw(draws, Purpose::choice, w);
    order.emplace_back(std::uint64_t{bits[0]} << 32 | bits[1], w);
  }
  std::ranges::sort(order);
  std::vector<std::int32_t> positions;
  for (const auto& [ignored, w] : order) {
    const auto chosen_tokens = static_cast<std::int64_t>(positions.size());
    // The first word is always taken, so that a text of one long word has tokens to predict.
    if (chosen_tokens > 0 && chosen_tokens + words[w].size > max_tokens) continue;
    for (std::int32_t i = 0; i < words[w].size; ++i) positions.push_back(words[w].first + i);
  }
  std::ranges::sort(positions);
  return positions;
}

}  // namespace

Masker::Masker(const Tokenizer& tokenizer, const MaskOptions& options)
    : options_(options), special_(tokenizer.special()), mask_(mask_token(tokenizer)) {
  constexpr std::string_view kSpace = "▁";
  const auto vocabulary = static_cast<std::int32_t>(tokenizer.vocabulary());
  if (options.whole_words) {
    for (std::int32_t id = 0; id < vocabulary; ++id) {
      starts_word_.push_back(tokenizer.piece(id).starts_with(kSpace));
    }
  }
  for (std::int32_t id = 0; id < vocabulary; ++id) {
    if (id != mask_ && !special_.contains(id)) replacements_.push_back(id);
  }
}

std::vector<std::int32_t> Masker::choose_positions(std::span<const std::int32_t> text,
                                                   const TextDraws& draws) const {
  const auto mask_count =
      std::max<std::int64_t>(1, std::llround(options_.fraction * static_cast<double>(text.size())));
  if (!options_.whole_words) return choose(mask_count, text.size(), draws);
  std::vector<Word> words;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == 0 || starts_word_[static_cast<std::size_t>(text[i])]) {
      words.push_back({static_cast<std::int32_t>(i), 1});
    } else {
      ++words.back().size;
    }
  }
  return choose_words(mask_count, words, draws);
}

MaskedText Masker::operator()(const Tokens& text, std::int64_t max_length,
                              const TextDraws& draws) const {
  MaskedText masked{.inputs = enclosed(text, special_, max_length), .positions = {}, .labels = {}};
  const auto inside = std::span(masked.inputs).subspan(1, masked.inputs.size() - 2);
  for (const std::int32_t position : choose_positions(inside, draws)) {
    std::int32_t& token = inside[static_cast<std::size_t>(position)];
    masked.positions.push_back(position + 1);
    masked.labels.push_back(token);
    const philox::Words words =
        draw(draws, Purpose::replacement, static_cast<std::size_t>(position));
    const double uniform = static_cast<double>(words[0]) * 0x1p-32;
    if (uniform < 0.8) {
      token = mask_;
    } else if (uniform < 0.9 && !replacements_.empty()) {
      token = replacements_[(std::uint64_t{words[1]} * replacements_.size()) >> 32];
    }
  }
  return masked;
}

MaskedObjective::MaskedObjective(const ObjectiveParts& parts)
    : model_(as_masked_language_model(parts.model)),
      context_(parts.context),
      masker_(parts.tokenizers.target(),
              {.fraction = parts.options.mask_share, .whole_words = parts.options.whole_words}),
      label_smoothing_(parts.options.label_smoothing) {}

ObjectiveLoss MaskedObjective::loss(const HostBatch& batch, std::int32_t first_sentence) const {
  const bool training = context_.is_training();
  std::vector<MaskedText> texts;
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < batch.targets.size(); ++i) {
    const TextDraws draws = draws_for(context_, batch, i, first_sentence);
    texts.push_back(masker_(batch.targets[i], model_.max_length(), draws));
    labels.insert(labels.end(), texts.back().labels.begin(), texts.back().labels.end());
  }
  const MaskedBatch masked =
      make_masked_batch(context_, texts, model_.vocabulary(), first_sentence);
  const Variable rows =
      gather_rows(model_.hidden(masked.inputs), masked.masked, masked.masked_rows);
  const VocabularyLoss loss = model_.loss(rows, masked.masked, masked.labels,
                                          {.smoothing = training ? label_smoothing_ : 0});
  ObjectiveLoss result{loss.total, masked.masked.rows, masked.inputs.rows.rows};
  if (!training) result.correct = count_correct(model_.scores(rows, masked.masked), labels);
  return result;
}

std::int64_t count_correct(const Tensor& scores, std::span<const std::int32_t> labels) {
  const std::vector<std::int32_t> best = to_host<std::int32_t>(top_tokens(scores, 1).ids);
  return std::inner_product(labels.begin(), labels.end(), best.begin(), std::int64_t{0},
                            std::plus<>(), [](std::int32_t a, std::int32_t b) { return a == b; });
}

}  // namespace nunchi
