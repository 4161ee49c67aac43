#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "cli/commands.h"
#include "cli/device_options.h"
#include "nunchi/base/atomic_file.h"
#include "nunchi/base/error.h"
#include "nunchi/data/line_stream.h"
#include "nunchi/text/words.h"
#include "nunchi/translate/stream.h"

namespace nunchi::cli {
namespace {

enum class Alignment { none, hard, soft };

struct Arguments {
  std::string folder, input = "-", output = "-";
  TranslatorOptions options;
  StreamOptions stream;
  int n_best = 0;
  bool word_scores = false;
  Alignment alignment = Alignment::none;
  ContextOptions device;
  // What was given on the command line goes before what the model's folder says.
  CLI::Option *beam_size = nullptr, *normalize = nullptr, *min_length = nullptr,
              *max_length = nullptr, *no_repeat = nullptr;
};

// Stdin as it comes, or a file, packed or not.
std::unique_ptr<LineSource> open_input(const std::string& path) {
  if (path == "-") return std::make_unique<LineStream>(STDIN_FILENO);
  return std::make_unique<LineReader>(path);
}

// The output: stdout as it comes, or a file that appears when all of it is there.
class Output {
 public:
  explicit Output(const std::string& path) {
    if (path != "-") file_.emplace(path);
  }

  // False once the reader has gone.
  bool is_open() const { return open_; }
  void add(std::string_view text) {
    buffer_ += text;
    constexpr std::size_t kFull = 1 << 16;
    if (buffer_.size() >= kFull) flush();
  }
  void flush() {
    if (file_) {
      file_->write(std::as_bytes(std::span(buffer_)));
    } else {
      write_to_stdout();
    }
    buffer_.clear();
  }
  void finish() {
    flush();
    if (file_) file_->commit();
  }

 private:
  void write_to_stdout() {
    std::string_view rest = buffer_;
    while (open_ && !rest.empty()) {
      const ssize_t count = ::write(STDOUT_FILENO, rest.data(), rest.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EPIPE) open_ = false;
      if (count < 0 && open_) {
        throw Error(std::string("the output cannot be written: ") + std::strerror(errno) + ".");
      }
      if (count > 0) rest.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  std::optional<AtomicFile> file_;
  bool open_ = true;
  std::string buffer_;
};

std::string joined(const auto& items, const auto& text_of) {
  std::string all;
  for (const auto& item : items) all += (all.empty() ? "" : " ") + text_of(item);
  return all;
}

// The log-probability of each word, and of </s>.
std::string word_scores(const Translation& translation) {
  const Words words = words_of(translation.pieces);
  std::vector<double> scores(words.texts.size(), 0);
  for (std::size_t i = 0; i < translation.pieces.size(); ++i) {
    scores[static_cast<std::size_t>(words.of_piece[i])] +=
        static_cast<double>(translation.token_scores[i]);
  }
  return "WordScores= " + joined(scores, [](double s) { return fmt::format("{:.4f}", s); });
}

// "0-0 1-2": source word, target word; or for each target word its weights over source words.
std::string alignment_text(const Translation& translation, Alignment kind) {
  if (translation.attention.weights.empty()) return "";
  const AttentionMatrix words = merged_into_words(translation.attention);
  if (kind == Alignment::hard) {
    return joined(hard_alignment(words), [](const std::pair<int, int>& pair) {
      return fmt::format("{}-{}", pair.first, pair.second);
    });
  }
  const std::size_t width = words.sources.size();
  std::string all;
  for (std::size_t t = 0; t < words.targets.size(); ++t) {
    if (t > 0) all += ' ';
    for (std::size_t s = 0; s < width; ++s) {
      all += fmt::format("{}{:.4f}", s > 0 ? "," : "", words.weights[t * width + s]);
    }
  }
  return all;
}

// A line for a line; with n-best or features, `id ||| text ||| features ||| score`.
std::string line_of(const Arguments& arguments, std::int64_t number,
                    const Translations& translations) {
  const bool plain =
      arguments.n_best == 0 && !arguments.word_scores && arguments.alignment == Alignment::none;
  if (plain) return translations[0].text + "\n";
  std::string lines;
  for (const Translation& translation : translations) {
    std::string features = fmt::format("LogProbability= {:.4f}", translation.log_probability);
    if (arguments.word_scores) features += " " + word_scores(translation);
    if (arguments.alignment != Alignment::none) {
      features += " Alignment= " + alignment_text(translation, arguments.alignment);
    }
    if (arguments.n_best > 0) lines += fmt::format("{} ||| ", number);
    lines += fmt::format("{} ||| {} ||| {:.4f}\n", translation.text, features, translation.score);
  }
  return lines;
}

void report(const LineCounts& counts) {
  const auto say = [](std::int64_t count, const char* what) {
    if (count > 0)
      fmt::print(stderr, "nunchi: {} {} {}\n", count, count == 1 ? "line" : "lines", what);
  };
  say(counts.empty, "without words stayed empty");
  say(counts.repaired, "with invalid UTF-8: U+FFFD stands for the bytes");
  say(counts.cut, "too long and cut (see --max-source-length)");
}

SearchOptions search_options(const Arguments& arguments, const SearchOptions& of_model) {
  SearchOptions search = arguments.options.search;
  if (!*arguments.beam_size) search.beam_size = search.sample ? 1 : of_model.beam_size;
  if (!*arguments.normalize) search.normalize = of_model.normalize;
  if (!*arguments.min_length) search.min_length = of_model.min_length;
  if (!*arguments.max_length) search.max_length = of_model.max_length;
  if (!*arguments.no_repeat) search.no_repeat_ngram = of_model.no_repeat_ngram;
  search.n_best = std::max(1, arguments.n_best);
  if (!*arguments.beam_size && !search.sample) {
    search.beam_size = std::max(search.beam_size, search.n_best);
  }
  return search;
}

void run(const Arguments& arguments) {
  // A reader that goes away is no error: writing tells.
  std::signal(SIGPIPE, SIG_IGN);
  const std::unique_ptr<ContextBase> context = make_context(arguments.device);
  const TranslationFolder folder(*context, arguments.folder);
  TranslatorOptions options = arguments.options;
  options.search = search_options(arguments, folder.search());
  options.alignment = arguments.alignment != Alignment::none;
  Translator translator(folder.model(), folder.tokenizers(), options);
  const std::unique_ptr<LineSource> lines = open_input(arguments.input);
  Output out(arguments.output);
  translate_stream(
      translator, *lines, arguments.stream,
      [&](std::int64_t number, const Translations& translations) {
        out.add(line_of(arguments, number, translations));
        return out.is_open();
      },
      [&] { out.flush(); });
  out.finish();
  report(translator.counts());
}

}  // namespace

void add_translate(CLI::App& program) {
  CLI::App* translate = program.add_subcommand("translate", "Translate lines of text");
  auto a = std::make_shared<Arguments>();
  SearchOptions& search = a->options.search;
  translate->add_option("MODEL", a->folder, "Model folder")->required();
  translate->add_option("--input", a->input, "Text to translate; - is stdin");
  translate->add_option("--output", a->output, "Where it goes; - is stdout");
  a->beam_size =
      translate->add_option("--beam-size", search.beam_size, "Hypotheses to keep; 1 is greedy");
  a->normalize = translate->add_option("--normalize", search.normalize,
                                       "Divide scores by length to this power");
  translate
      ->add_option("--n-best", a->n_best, "Print so many, as id ||| text ||| features ||| score")
      ->check(CLI::Range(1, 4096));
  translate->add_flag("--word-scores", a->word_scores, "Print each word's log-probability");
  translate
      ->add_option("--alignment", a->alignment,
                   "Print which source word each target word came from: hard (0-0 1-2) or soft")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, Alignment>{{"hard", Alignment::hard}, {"soft", Alignment::soft}}))
      ->expected(0, 1)
      ->default_str("hard");
  translate->add_flag("--sample", search.sample, "Draw tokens instead of searching");
  translate->add_option("--top-k", search.top_k, "Draw from the so many likeliest");
  translate->add_option("--top-p", search.top_p, "Draw from the likeliest that hold so much");
  translate->add_option("--temperature", search.temperature, "Flatter above 1, sharper below");
  translate->add_option("--seed", search.seed, "Decides the draws");
  translate->add_flag("--prefix", a->stream.prefixes,
                      "Lines are SOURCE <tab> BEGINNING: translations begin so");
  a->min_length = translate->add_option("--min-length", search.min_length, "Tokens at least");
  a->max_length = translate->add_option("--max-length", search.max_length, "Tokens at most");
  translate
      ->add_option("--max-source-length", a->options.max_source_length,
                   "Tokens of a source line; more are cut")
      ->check(CLI::Range(2, 1 << 20));
  a->no_repeat = translate->add_option("--no-repeat-ngram", search.no_repeat_ngram,
                                       "Never say the same n tokens twice");
  translate->add_option("--max-repeats", search.max_repeats,
                        "How often a few tokens may follow one another; 0: for ever");
  translate->add_option("--batch-tokens", a->options.batch_tokens, "Source tokens at once")
      ->check(CLI::Range(1, 1 << 24));
  translate->add_option("--batch-sentences", a->options.batch_sentences, "Sentences at once")
      ->check(CLI::Range(1, 1 << 20));
  add_device_options(*translate, a->device);
  translate->callback([=] { run(*a); });
}

}  // namespace nunchi::cli
