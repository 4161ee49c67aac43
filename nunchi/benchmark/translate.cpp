#include "nunchi/benchmark/translate.h"

#include "nunchi/base/error.h"
#include "nunchi/benchmark/random_sentences.h"
#include "nunchi/inference/model_folder.h"
#include "nunchi/inference/translator.h"
#include "nunchi/models/check_device.h"
#include "nunchi/models/sequence_model.h"

namespace nunchi::benchmark {
namespace {

// Calls `translate`, which returns the number of tokens, once without timing and then for `rounds`
// timed rounds.
template <class F>
void measure_rounds(ContextBase& context, int rounds, bool profile, TranslateBenchResult& result,
                    const F& translate) {
  std::vector<double> times;
  for (int round = 0; round <= rounds; ++round) {
    if (round > 0 && profile) context.set_profile(&result.profile);
    const double begin = seconds_now();
    result.tokens = translate();
    const double seconds = seconds_now() - begin;
    context.set_profile(nullptr);
    if (round > 0) times.push_back(seconds);
  }
  result.seconds = median(times);
  result.rounds = rounds;
}

}  // namespace

TranslateBenchResult measure_translation(ContextBase& context,
                                         const TranslateBenchOptions& options) {
  const double start = seconds_now();
  const std::unique_ptr<Model> owned_model = options.model->make();
  const TranslationModel& model = as_translation_model(*owned_model);
  check_device(*owned_model, context.device(), "the measured model");
  nn::Parameters::Memory memory;
  if (context.precision() == Precision::int8) memory.int8 = [](const auto&) { return true; };
  owned_model->parameters().allocate(context, memory);
  owned_model->parameters().initialize(1);
  std::vector<Tokens> sources =
      random_sentences({.count = options.sentences,
                        .length = options.source_length,
                        .vocabulary = model.input_sizes().source_vocabulary,
                        .stream = 1});
  const SearchOptions search_options{.beam_size = options.beam_size,
                                     .min_length = options.target_length,
                                     .max_length = options.target_length,
                                     .max_repeats = 0};
  Searcher searcher(model, search_options);
  const DecoderTokens special = decoder_tokens(kUsualSpecialTokens);
  const auto translate = [&](std::size_t begin, std::size_t end) {
    const TokenBatch batch =
        make_token_batch(context, std::span(sources).subspan(begin, end - begin),
                         model.input_sizes().source_vocabulary);
    std::int64_t tokens = 0;
    for (const Hypotheses& found : searcher({.source = batch, .tokens = special})) {
      tokens += static_cast<std::int64_t>(found[0].tokens.size());
    }
    return tokens;
  };
  TranslateBenchResult result{.sentences = options.sentences};
  translate(0, 1);
  result.first_sentence_seconds = seconds_now() - start;
  measure_rounds(context, options.rounds, options.profile, result, [&] {
    std::int64_t tokens = 0;
    const auto step = static_cast<std::size_t>(options.batch);
    for (std::size_t begin = 0; begin < sources.size(); begin += step) {
      tokens += translate(begin, std::min(begin + step, sources.size()));
    }
    return tokens;
  });
  return result;
}

TranslateBenchResult measure_translation(ContextBase& context, const FolderBenchOptions& options) {
  if (options.lines.empty()) throw UsageError("there are no lines to translate.");
  const double start = seconds_now();
  const ModelFolder folder(context, options.folder, as_translation_model);
  TranslatorOptions translator_options{.search = folder.search(), .batch_sentences = options.batch};
  if (options.beam_size > 0) translator_options.search.beam_size = options.beam_size;
  Translator translator(context, folder.model(), folder.tokenizers(), translator_options);
  translator.translate(options.lines[0]);
  TranslateBenchResult result{.sentences = static_cast<std::int64_t>(options.lines.size())};
  result.first_sentence_seconds = seconds_now() - start;
  std::vector<SourceLine> lines;
  for (const std::string& line : options.lines) lines.push_back({.text = line});
  measure_rounds(context, options.rounds, options.profile, result, [&] {
    std::int64_t tokens = 0;
    for (const Translations& found : translator.translate(lines)) {
      tokens += static_cast<std::int64_t>(found[0].pieces.size());
    }
    return tokens;
  });
  return result;
}

}  // namespace nunchi::benchmark
