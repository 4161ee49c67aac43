#include <fmt/format.h>

#include <csignal>
#include <memory>

#include "cli/commands.h"
#include "cli/device_options.h"
#include "cli/line_command.h"
#include "cli/search_options.h"
#include "nunchi/inference/pipeline.h"
#include "nunchi/inference/translate_stream.h"
#include "nunchi/inference/translation_format.h"

namespace nunchi::cli {
namespace {

struct Arguments {
  std::string folder, input = "-", output = "-";
  TranslatorOptions options;
  LineWindowOptions stream;
  int n_best = 0;
  bool word_scores = false;
  std::string alignment;  // hard, soft or not asked for
  ContextOptions device;
  SearchArguments search;
};

CLI::Validator hard_or_soft() {
  return {[](const std::string& text) -> std::string {
            if (text == "hard" || text == "soft") return {};
            return "an alignment is hard or soft, not '" + text + "'";
          },
          "hard|soft", "alignment"};
}

SearchOptions search_options(const Arguments& arguments, const SearchOptions& of_model) {
  SearchOptions search = arguments.search.with(of_model);
  search.n_best = std::max(1, arguments.n_best);
  if (!*arguments.search.beam_size && !search.sample) {
    search.beam_size = std::max(search.beam_size, search.n_best);
  }
  return search;
}

void run(const Arguments& arguments) {
  // A reader that goes away is no error: writing tells.
  std::signal(SIGPIPE, SIG_IGN);
  arguments.search.check();
  // Before the work: what cannot be written is known at once.
  Output out(arguments.output);
  const Pipeline pipeline =
      Pipeline::open(arguments.folder, {.device = arguments.device, .check = as_translation_model});
  TranslatorOptions options = arguments.options;
  options.search = search_options(arguments, pipeline.search());
  options.alignment = !arguments.alignment.empty();
  Translator translator = pipeline.translator(options);
  const std::unique_ptr<LineSource> lines = open_input(arguments.input);
  const TranslationFormat format{.n_best = arguments.n_best > 0,
                                 .word_scores = arguments.word_scores,
                                 .alignment = arguments.alignment == "hard"   ? Alignment::hard
                                              : arguments.alignment == "soft" ? Alignment::soft
                                                                              : Alignment::none};
  translate_stream(
      translator, *lines, arguments.stream,
      [&](std::int64_t number, const Translations& translations) {
        out.add(to_text(format, number, translations));
        return out.is_open();
      },
      [&] { out.flush(); });
  out.finish();
  report(translator.counts(), "--max-source-length");
}

}  // namespace

void add_translate(CLI::App& program) {
  CLI::App* translate = program.add_subcommand("translate", "Translate lines of text");
  auto a = std::make_shared<Arguments>();
  translate->add_option("MODEL", a->folder, "Model folder")->required();
  translate->add_option("--input", a->input, "Text to translate; - is stdin");
  translate->add_option("--output", a->output, "Where it goes; - is stdout");
  a->search.add_to(*translate);
  translate
      ->add_option("--n-best", a->n_best, "Print so many, as id ||| text ||| features ||| score")
      ->check(CLI::Range(1, 4096));
  translate->add_flag("--word-scores", a->word_scores, "Print each word's log-probability");
  translate
      ->add_option("--alignment", a->alignment,
                   "Print which source word each target word came from: hard (0-0 1-2) or soft")
      ->check(hard_or_soft())
      ->expected(0, 1)
      ->default_str("hard");
  translate->add_flag("--prefix", a->stream.prefixes,
                      "Lines are SOURCE <tab> BEGINNING: translations begin so");
  SearchOptions& search = a->search.search;
  a->search.min_length =
      translate->add_option("--min-length", search.min_length, "Tokens at least");
  a->search.max_length = translate->add_option("--max-length", search.max_length, "Tokens at most");
  translate
      ->add_option("--max-source-length", a->options.max_source_length,
                   "Tokens of a source line; more are cut")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  translate->add_option("--batch-tokens", a->options.batch_tokens, "Source tokens at once")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  translate->add_option("--batch-sentences", a->options.batch_sentences, "Sentences at once")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  add_device_options(*translate, a->device);
  translate->callback([=] { run(*a); });
}

}  // namespace nunchi::cli
