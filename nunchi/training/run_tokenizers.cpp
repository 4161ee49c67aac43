#include "nunchi/training/run_tokenizers.h"

#include <fmt/format.h>

#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"
#include "nunchi/base/interrupted.h"
#include "nunchi/base/json_options.h"
#include "nunchi/text/learn_tokenizer.h"
#include "nunchi/training/objectives/objectives.h"

namespace nunchi {
namespace {

enum class Side : std::uint8_t { source, target, both };

// The lines of one side of the training data, or of both, pair by pair.
class TrainingLines {
 public:
  TrainingLines(std::vector<CorpusPart> parts, Side side) : parts_(std::move(parts)), side_(side) {}

  bool ended() const { return ended_; }

  bool operator()(std::string& line) {
    if (target_is_next_) {
      target_is_next_ = false;
      line = std::move(pair_.target);
      return true;
    }
    while (!reader_ || !reader_->next(pair_)) {
      ended_ = part_ == parts_.size();
      if (ended_) return false;
      reader_.emplace(parts_[part_++]);
    }
    const CorpusPart& part = parts_[part_ - 1];
    const bool only_target = !part.text.empty() || !part.features.empty();
    target_is_next_ = side_ == Side::both && !only_target;
    line = std::move(side_ == Side::target || only_target ? pair_.target : pair_.source);
    return true;
  }

 private:
  std::vector<CorpusPart> parts_;
  Side side_;
  std::size_t part_ = 0;
  std::optional<PairReader> reader_;
  RawPair pair_;
  bool target_is_next_ = false;
  bool ended_ = false;
};

// Labels are names, not text.
bool has_text_targets(const TrainConfig& config) {
  return info_of(config.training.objective).targets == nullptr;
}

std::string words_of(const TokenizerOptions& options) {
  if (options.kind == TokenizerKind::characters) return "characters";
  if (options.kind == TokenizerKind::bytes) return "bytes";
  return grouped(options.vocabulary) + " tokens";
}

std::unique_ptr<Tokenizer> learned(const TrainConfig& config, Side side,
                                   const RunTokenizerOptions& options) {
  if (options.note) {
    const char* from = side == Side::both          ? "both sides"
                       : !has_text_targets(config) ? "the texts"
                       : side == Side::source      ? "the sources"
                                                   : "the targets";
    const bool is_text = !config.data.train.front().text.empty();
    options.note(fmt::format("learning a tokenizer of {} from {}",
                             words_of(config.tokenizer.options),
                             is_text ? "the text" : fmt::format("{} of the training data", from)));
  }
  const std::vector<CorpusPart> parts = config.data.train_parts();
  TrainingLines lines(parts, side);
  const auto next_line = [&](std::string& line) {
    check_stop(options.stop);
    return lines(line);
  };
  try {
    LearnedTokenizer found = learn_tokenizer(config.tokenizer.options, next_line);
    return make_tokenizer(std::move(found.bytes), "the tokenizer of the run");
  } catch (const Error& error) {
    // An error after the last line is about the text.
    if (!lines.ended()) throw;
    throw Error(names_of(parts) + ": " + error.what());
  }
}

// Whether the config says how a tokenizer is to be learned.
bool describes_another(const TokenizerOptions& options) {
  const TokenizerOptions usual;
  return options.kind != usual.kind || options.vocabulary != usual.vocabulary ||
         options.byte_fallback != usual.byte_fallback ||
         options.character_coverage != usual.character_coverage || !options.symbols.empty() ||
         options.split_digits != usual.split_digits || options.max_lines != usual.max_lines;
}

GenerationTokens share_generation_tokens(Communicator& communicator,
                                         const GenerationTokens& tokens) {
  OptionWriter out;
  GenerationTokens::fields(out, tokens);
  std::string text = to_json(out.tree());
  communicator.broadcast(text);
  const Options options = Options::from_json(text, "the leader's special tokens");
  OptionReader in(options);
  GenerationTokens shared;
  GenerationTokens::fields(in, shared);
  return shared;
}

}  // namespace

Tokenizers make_tokenizers(const TrainConfig& config, const RunTokenizerOptions& options) {
  const TokenizerConfig& asked = config.tokenizer;
  if (options.note && !config.learns_tokenizer() && describes_another(asked.options)) {
    options.note(
        fmt::format("the tokenizer is read from '{}': the config's options for learning one have "
                    "no effect",
                    (asked.source.empty() ? config.initialize_from : asked.source).string()));
  }
  if (!asked.source.empty()) {
    GenerationTokens tokens;
    if (!config.initialize_from.empty()) tokens = load_generation_tokens(config.initialize_from);
    if (asked.shared) return Tokenizers(load_tokenizer(asked.source), std::move(tokens));
    return {load_tokenizer(asked.source), load_tokenizer(asked.target), std::move(tokens)};
  }
  if (!config.initialize_from.empty()) return load_tokenizers(config.initialize_from);
  if (asked.shared) {
    const Side side = has_text_targets(config) ? Side::both : Side::source;
    return Tokenizers(learned(config, side, options));
  }
  std::unique_ptr<Tokenizer> source = learned(config, Side::source, options);
  return {std::move(source), learned(config, Side::target, options)};
}

Tokenizers share_tokenizers(Communicator& communicator, const std::function<Tokenizers()>& make) {
  if (communicator.size() == 1) return make();
  std::optional<Tokenizers> leaders;
  if (communicator.is_leader()) leaders.emplace(make());
  const bool shared = communicator.of_leader(leaders && leaders->shared());
  GenerationTokens tokens = leaders ? leaders->generation_tokens() : GenerationTokens();
  tokens = share_generation_tokens(communicator, tokens);
  const auto receive = [&](const Tokenizer* tokenizer) {
    std::string bytes = tokenizer != nullptr ? tokenizer->serialized() : std::string();
    communicator.broadcast(bytes);
    return make_tokenizer(std::move(bytes), "the tokenizer of the run");
  };
  std::unique_ptr<Tokenizer> source = receive(leaders ? &leaders->source() : nullptr);
  if (shared) return Tokenizers(std::move(source), std::move(tokens));
  std::unique_ptr<Tokenizer> target = receive(leaders ? &leaders->target() : nullptr);
  return {std::move(source), std::move(target), std::move(tokens)};
}

}  // namespace nunchi
