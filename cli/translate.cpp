#include <fmt/format.h>

#include <csignal>
#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/device_options.h"
#include "cli/line_command.h"
#include "cli/option_group.h"
#include "cli/picture.h"
#include "cli/search_options.h"
#include "cli/working_line.h"
#include "nunchi/base/error.h"
#include "nunchi/inference/ensemble.h"
#include "nunchi/inference/translate_stream.h"
#include "nunchi/inference/translation_format.h"

namespace nunchi::cli {
namespace {

struct Arguments {
  std::vector<std::string> folders;
  std::string input = "-", output = "-";
  TranslatorOptions options;
  LineWindowOptions windows;
  std::optional<int> n_best;
  bool word_scores = false, json = false, picture = false;
  std::string alignment;  // "hard", "soft" or, for none, empty
  std::string terms;      // a file; empty: none
  ContextOptions device;
  SearchArguments search;
};

SearchOptions search_options(const Arguments& arguments, const SearchOptions& defaults) {
  SearchOptions search = arguments.search.merged_with(defaults);
  search.n_best = arguments.n_best.value_or(1);
  if (!*arguments.search.beam_size && !search.sample) {
    search.beam_size = std::max(search.beam_size, search.n_best);
  }
  return search;
}

void run(const Arguments& arguments) {
  // A closed pipe is not an error: writing to it returns EPIPE.
  std::signal(SIGPIPE, SIG_IGN);
  // Opened first, so that an output that cannot be written is reported immediately.
  Output out(arguments.output);
  const Ensemble ensemble =
      Ensemble::open({arguments.folders.begin(), arguments.folders.end()}, arguments.device);
  TranslatorOptions options = arguments.options;
  options.search = search_options(arguments, ensemble.search());
  options.alignment = !arguments.alignment.empty() || arguments.picture;
  if (!arguments.terms.empty()) {
    options.terms = std::make_shared<const TermList>(TermList::read(arguments.terms));
  }
  Translator translator = ensemble.translator(options);
  WorkingLine working("lines done", ensemble.context().cache<WorkProgress>());
  const std::unique_ptr<LineSource> lines = working.watched(open_input(arguments.input));
  const TranslationFormat format{.n_best = arguments.n_best.has_value(),
                                 .word_scores = arguments.word_scores,
                                 .alignment = alignment_kind(arguments.alignment)};
  translate_stream(
      translator, *lines, arguments.windows,
      [&](std::int64_t number, const Translations& translations) {
        working.hide_while([&] {
          out.add(arguments.json ? to_json(format, number, translations)
                                 : to_text(format, number, translations));
          if (!arguments.picture) return;
          out.flush();
          print_picture(attention_picture(merged_into_words(translations.front().attention),
                                          picture_options()));
        });
        working.add(1);
        return out.is_open();
      },
      [&] { working.hide_while([&] { out.flush(); }); });
  out.finish();
  report(translator.counts(), "--max-source-length");
}

}  // namespace

void add_translate(CLI::App& program, Job& job) {
  CLI::App* translate =
      add_command(program, "translate",
                  "Translate lines of text\n\n"
                  "Prints one translation for each line, in the same order, as soon as no "
                  "more input is waiting. Several models with the same target tokenizer "
                  "translate together: a token's probability is the mean of theirs.")
          ->group(kUsing);
  auto a = std::make_shared<Arguments>();
  add_models(*translate, a->folders);
  add_input(*translate, a->input, "Lines to translate");
  add_output(*translate, a->output, "Where to write the translations");
  OptionGroup(*translate, kInputAndOutput)
      .flag("--prefix", a->windows.prefixes,
            "Read lines of SOURCE <tab> PREFIX; each translation starts with its prefix");
  OptionGroup terms(*translate, "Terms");
  terms.add("--terms", a->terms, text("FILE", "lines of SOURCE <tab> TARGET"),
            "Where a line contains a source term, its translation contains the target term");
  terms.flag("--inline-terms", a->options.inline_terms,
             "Lines contain terms as <term target=\"TARGET\">SOURCE</term>");
  OptionGroup format(*translate, kOutputFormat);
  format.add("--n-best", a->n_best, whole_number(1, 4096),
             "Print the N best translations as id ||| text ||| features ||| score");
  format.flag("--word-scores", a->word_scores, "Add the log-probability of each word");
  add_alignment(*translate, a->alignment);
  add_json(*translate, a->json, "Print one JSON object for each line");
  add_picture(*translate, a->picture, "the attention of each translation, word by word");
  a->search.add_to(*translate);
  SearchOptions& search = a->search.search;
  constexpr std::int64_t kMaxCount = 1 << 20;
  OptionGroup lengths(*translate, kSearch);
  a->search.min_length = lengths
                             .add("--min-length", search.min_length, whole_number(0, kMaxCount),
                                  "Minimum tokens of a translation, without </s>")
                             ->default_str(kModelDefault);
  a->search.max_length = lengths
                             .add("--max-length", search.max_length, whole_number(1, kMaxCount),
                                  "Maximum tokens of a translation, without </s>")
                             ->default_str(kModelDefault);
  OptionGroup batches(*translate, kBatches);
  batches.add("--max-source-length", a->options.max_source_length, whole_number(2, kMaxCount),
              "Maximum tokens of a source line; longer lines are cut");
  batches.add("--batch-tokens", a->options.batch_tokens, whole_number(1, 1 << 24),
              "Approximate number of source tokens per batch");
  batches.add("--batch-sentences", a->options.batch_sentences, whole_number(1, kMaxCount),
              "Maximum sentences per batch");
  add_device_options(*translate, a->device);
  add_examples(*translate, {"echo '내일 오후 3시에 서울에서 만나요' | nunchi translate runs/demo",
                            "nunchi translate runs/demo -i source.txt -o target.txt --beam-size 4",
                            "nunchi translate runs/first runs/second -i source.txt",
                            "echo '내일 만나요' | nunchi translate runs/demo --picture"});
  translate->callback([=, &job] {
    a->search.check();
    if (a->search.search.sample && (!a->terms.empty() || a->options.inline_terms)) {
      throw UsageError("--terms and --inline-terms cannot be combined with --sample.");
    }
    job = [=] { run(*a); };
  });
}

}  // namespace nunchi::cli
