#include "nunchi/training/run_tokenizers.h"

#include <fmt/format.h>

#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"
#include "nunchi/base/interrupted.h"
#include "nunchi/base/json_options.h"
#include "nunchi/training/objectives/objectives.h"

namespace nunchi {
namespace {

enum class Side : std::uint8_t { source, target, both };

// Reads the lines of one side of the training data, or of both sides alternately.
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
    const bool has_only_target = !part.text.empty() || !part.features.empty();
    target_is_next_ = side_ == Side::both && !has_only_target;
    line = std::move(side_ == Side::target || has_only_target ? pair_.target : pair_.source);
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

// False for labels, which are names and not text to learn a tokenizer from.
bool has_text_targets(const TrainConfig& config) {
  return info_of(config.training.objective).targets == nullptr;
}

std::string description_of(const TokenizerOptions& options) {
  if (options.kind == TokenizerKind::characters) return "characters";
  if (options.kind == TokenizerKind::bytes) return "bytes";
  return grouped(options.vocabulary) + " tokens";
}

std::unique_ptr<Tokenizer> learn(const TrainConfig& config, Side side,
                                 const RunTokenizerOptions& options) {
  if (options.note) {
    const char* from = side == Side::both          ? "both sides"
                       : !has_text_targets(config) ? "the texts"
                       : side == Side::source      ? "the sources"
                                                   : "the targets";
    const bool is_text = !config.data.train.front().text.empty();
    options.note(fmt::format("learning a tokenizer of {} from {}",
                             description_of(config.tokenizer.options),
                             is_text ? "the text" : fmt::format("{} of the training data", from)));
  }
  const std::vector<CorpusPart> parts = config.data.train_parts();
  TrainingLines lines(parts, side);
  try {
    LearnedTokenizer learned =
        learn_tokenizer(config.tokenizer.options, std::ref(lines), options.learning);
    return make_tokenizer(std::move(learned.bytes), "the tokenizer of the run");
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    // An error after the last line concerns the text as a whole, so it names the files.
    if (!lines.ended()) throw;
    throw Error(names_of(parts) + ": " + error.what());
  }
}

// Whether an option for learning a tokenizer differs from its default.
bool has_learning_options(const TokenizerOptions& options) {
  const TokenizerOptions defaults;
  return options.kind != defaults.kind || options.vocabulary != defaults.vocabulary ||
         options.byte_fallback != defaults.byte_fallback ||
         options.character_coverage != defaults.character_coverage || !options.symbols.empty() ||
         options.split_digits != defaults.split_digits || options.max_lines != defaults.max_lines;
}

GenerationTokens share_generation_tokens(Communicator& communicator,
                                         const GenerationTokens& tokens) {
  OptionWriter out;
  GenerationTokens::visit_fields(out, tokens);
  std::string text = to_json(out.tree());
  communicator.broadcast(text);
  const Options options = Options::from_json(text, "the leader's special tokens");
  OptionReader in(options);
  GenerationTokens shared;
  GenerationTokens::visit_fields(in, shared);
  return shared;
}

}  // namespace

Tokenizers make_tokenizers(const TrainConfig& config, const RunTokenizerOptions& options) {
  const TokenizerConfig& tokenizer = config.tokenizer;
  if (options.note && !config.learns_tokenizer() && has_learning_options(tokenizer.options)) {
    options.note(fmt::format(
        "the tokenizer is read from '{}': the config's options for learning one have "
        "no effect",
        (tokenizer.source.empty() ? config.initialize_from : tokenizer.source).string()));
  }
  if (!tokenizer.source.empty()) {
    GenerationTokens tokens;
    if (!config.initialize_from.empty()) tokens = load_generation_tokens(config.initialize_from);
    if (tokenizer.shared) return Tokenizers(load_tokenizer(tokenizer.source), std::move(tokens));
    return {load_tokenizer(tokenizer.source), load_tokenizer(tokenizer.target), std::move(tokens)};
  }
  if (!config.initialize_from.empty()) return load_tokenizers(config.initialize_from);
  if (tokenizer.shared) {
    const Side side = has_text_targets(config) ? Side::both : Side::source;
    return Tokenizers(learn(config, side, options));
  }
  std::unique_ptr<Tokenizer> source = learn(config, Side::source, options);
  return {std::move(source), learn(config, Side::target, options)};
}

Tokenizers share_tokenizers(Communicator& communicator, const std::function<Tokenizers()>& make) {
  if (communicator.size() == 1) return make();
  std::optional<Tokenizers> made;
  if (communicator.is_leader()) made.emplace(make());
  const bool shared = communicator.from_leader(made && made->shared());
  GenerationTokens tokens = made ? made->generation_tokens() : GenerationTokens();
  tokens = share_generation_tokens(communicator, tokens);
  // `tokenizer` is null except on the leader.
  const auto broadcast = [&](const Tokenizer* tokenizer) {
    std::string bytes = tokenizer != nullptr ? tokenizer->serialized() : std::string();
    communicator.broadcast(bytes);
    return make_tokenizer(std::move(bytes), "the tokenizer of the run");
  };
  std::unique_ptr<Tokenizer> source = broadcast(made ? &made->source() : nullptr);
  if (shared) return Tokenizers(std::move(source), std::move(tokens));
  std::unique_ptr<Tokenizer> target = broadcast(made ? &made->target() : nullptr);
  return {std::move(source), std::move(target), std::move(tokens)};
}

}  // namespace nunchi
