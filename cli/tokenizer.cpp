#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "cli/commands.h"
#include "cli/input_output.h"
#include "cli/option_group.h"
#include "cli/progress_line.h"
#include "cli/stop_signals.h"
#include "nunchi/base/atomic_file.h"
#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"
#include "nunchi/data/line_stream.h"
#include "nunchi/models/format/tokenizers.h"
#include "nunchi/text/learn_tokenizer.h"
#include "nunchi/text/tokenizer.h"
#include "nunchi/text/unicode.h"

namespace nunchi::cli {
namespace {

namespace fs = std::filesystem;

struct TrainArguments {
  std::vector<std::string> inputs;
  std::string output;
  std::string kind = "bpe";
  TokenizerOptions options;
};

struct CodecArguments {
  std::string model;
  std::string side;  // "source", "target" or not given
  bool ids = false;
};

// The path of the tokenizer's file: `model` itself, or the file in a model folder.
fs::path tokenizer_path(const CodecArguments& arguments) {
  const fs::path model = arguments.model;
  std::error_code ignored;  // errors are reported when the file is opened
  if (!fs::is_directory(model, ignored)) {
    if (arguments.side.empty()) return model;
    throw UsageError("--side needs a model folder with two tokenizers; '" + model.string() +
                     "' is a file.");
  }
  if (const fs::path shared = tokenizer_file(model, "tokenizer"); !shared.empty()) return shared;
  if (arguments.side.empty()) {
    const bool has_sides = !tokenizer_file(model, "source").empty();
    throw Error(fmt::format(
        "'{}' has no tokenizer.spm or tokenizer.tok{}", model.string(),
        has_sides ? ", but one for each side: add --side source or --side target." : "."));
  }
  const fs::path side_file = tokenizer_file(model, arguments.side);
  return side_file.empty() ? model / (arguments.side + ".spm") : side_file;
}

std::string count_text(std::int64_t count, const char* singular, const char* plural) {
  return count == 1 ? fmt::format("1 {}", singular) : fmt::format("{} {}", grouped(count), plural);
}

// Counts of problems in the input, reported once at the end.
struct Problems {
  std::int64_t invalid_lines = 0;
  std::int64_t unknown_tokens = 0;

  void print(const LineSource& lines) const {
    if (invalid_lines > 0) {
      fmt::print(stderr, "nunchi: {} with invalid UTF-8: replaced by U+FFFD.\n",
                 count_text(invalid_lines, "line", "lines"));
    }
    if (unknown_tokens > 0) {
      fmt::print(stderr, "nunchi: {} not in the vocabulary, read as <unk>.\n",
                 count_text(unknown_tokens, "token is", "tokens are"));
    }
    if (lines.cut_lines() > 0) {
      fmt::print(stderr, "nunchi: {} longer than 1 MiB, cut there.\n",
                 count_text(lines.cut_lines(), "line was", "lines were"));
    }
  }
};

void train(const TrainArguments& arguments) {
  // Opened first, so that an output that cannot be written is reported immediately.
  remove_abandoned_files(fs::path(arguments.output).parent_path());
  AtomicFile file(arguments.output);
  const RemovedWhenStopped removed(file.temporary(), arguments.output);
  std::unique_ptr<LineReader> reader;
  auto input = arguments.inputs.begin();
  const auto next_line = [&](std::string& line) {
    while (true) {
      if (reader && reader->next(line)) return true;
      if (input == arguments.inputs.end()) return false;
      reader = std::make_unique<LineReader>(input_path(*input++));
    }
  };
  const LearnedTokenizer learned = [&] {
    ProgressLine line;
    return learn_tokenizer(arguments.options, next_line, {.progress = [&](const auto& progress) {
                             line.update(learning_line(progress));
                           }});
  }();
  file.write(std::as_bytes(std::span(learned.bytes)));
  file.commit();
  const std::string tokens =
      grouped(make_tokenizer(learned.bytes, arguments.output)->vocabulary()) + " tokens";
  if (arguments.options.kind == TokenizerKind::bytes) {
    fmt::print(stderr, "{}: {}, independent of the text.\n", arguments.output, tokens);
    return;
  }
  fmt::print(stderr, "{}: {}, learned from {}{}.\n", arguments.output, tokens,
             count_text(learned.lines_used, "line", "lines"),
             learned.lines_used < learned.lines ? " of " + grouped(learned.lines) : "");
}

// Prints the text. Flushes when no more input is available, so that a program that sends one line
// at a time gets its answer.
void answer(const std::string& text, LineSource& lines) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (!lines.is_ready()) std::fflush(stdout);
}

void encode(const CodecArguments& arguments) {
  const auto tokenizer = load_tokenizer(tokenizer_path(arguments));
  LineStream lines(STDIN_FILENO);
  Problems problems;
  std::string out;
  for (std::string line; lines.next(line);) {
    if (!is_valid_utf8(line)) ++problems.invalid_lines;
    out.clear();
    for (const std::int32_t id : tokenizer->encode(line)) {
      if (!out.empty()) out += ' ';
      out += arguments.ids ? std::to_string(id) : tokenizer->piece(id);
    }
    out += '\n';
    answer(out, lines);
  }
  problems.print(lines);
}

// Parses a token of a line, given as a piece or as an id; <unk> for anything else.
class TokenReader {
 public:
  TokenReader(const Tokenizer& tokenizer, bool ids)
      : vocabulary_(tokenizer.vocabulary()), unknown_(tokenizer.special().unknown) {
    if (ids) return;
    for (std::int32_t id = 0; id < vocabulary_; ++id) pieces_.emplace(tokenizer.piece(id), id);
  }

  std::int32_t read(std::string_view word, Problems& problems) const {
    std::int32_t id = -1;
    if (!pieces_.empty()) {
      const auto found = pieces_.find(std::string(word));
      if (found != pieces_.end()) id = found->second;
    } else {
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
      if (error != std::errc() || end != word.data() + word.size()) id = -1;
    }
    if (id >= 0 && id < vocabulary_) return id;
    ++problems.unknown_tokens;
    return unknown_;
  }

 private:
  std::int64_t vocabulary_;
  std::int32_t unknown_;
  std::unordered_map<std::string, std::int32_t> pieces_;  // empty when ids are read
};

void decode(const CodecArguments& arguments) {
  const auto tokenizer = load_tokenizer(tokenizer_path(arguments));
  const TokenReader reader(*tokenizer, arguments.ids);
  LineStream lines(STDIN_FILENO);
  Problems problems;
  for (std::string line; lines.next(line);) {
    Tokens tokens;
    for (std::string_view rest = line; !rest.empty();) {
      const std::string_view word = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      if (!word.empty()) tokens.push_back(reader.read(word, problems));
    }
    std::string text = tokenizer->decode(tokens);
    // Byte pieces can form a line break, but the output must have one line for each line of input.
    std::ranges::replace(text, '\n', ' ');
    text += '\n';
    answer(text, lines);
  }
  problems.print(lines);
}

bool has_pieces(TokenizerKind kind) {
  return kind == TokenizerKind::bpe || kind == TokenizerKind::unigram;
}

// Throws UsageError if the output is named .spm but has the format .tok, or the reverse: model
// folders distinguish the two formats by the extension.
void check_extension(const TrainArguments& arguments) {
  const bool pieces = has_pieces(arguments.options.kind);
  if (fs::path(arguments.output).extension() != (pieces ? ".tok" : ".spm")) return;
  throw UsageError(
      fmt::format("the extension of '{}' is wrong: a tokenizer of kind {} is a {} file.",
                  arguments.output, arguments.kind, pieces ? ".spm" : ".tok"));
}

constexpr const char* kTokenizers = "Tokenizers";

// Throws UsageError for options that this kind of tokenizer ignores.
void check_options(const CLI::App& command, const TrainArguments& arguments) {
  const TokenizerKind kind = arguments.options.kind;
  const bool pieces = has_pieces(kind);
  if (pieces && command.count("--vocab") == 0) {
    throw UsageError("bpe and unigram need --vocab, the size of the vocabulary.");
  }
  const auto refuse = [&](const char* name, const char* why) {
    if (command.count(name) == 0) return;
    throw UsageError(fmt::format("{} has no effect: {}.", name, why));
  };
  for (const char* name : {"--vocab", "--character-coverage"}) {
    if (kind == TokenizerKind::bytes) refuse(name, "a tokenizer of bytes always has 256 bytes");
  }
  for (const char* name : {"--no-byte-fallback", "--symbol", "--split-digits", "--max-lines"}) {
    if (!pieces) refuse(name, "--kind is neither bpe nor unigram");
  }
  check_extension(arguments);
}

void add_tokenizer_train(CLI::App& tokenizer, Job& job) {
  CLI::App* command =
      add_command(tokenizer, "train", "Learn a tokenizer from text")->group(kTokenizers);
  auto arguments = std::make_shared<TrainArguments>();
  TokenizerOptions& options = arguments->options;
  OptionGroup files(*command, kInputAndOutput);
  files
      .add("-i,--input", arguments->inputs,
           text("FILE", "text files, plain, .gz or .xz, or - for standard input"),
           "Text to learn from; several files are allowed")
      ->required();
  files
      .add("-o,--output", arguments->output,
           text("FILE", "NAME.spm, or NAME.tok for characters and bytes"), "File to write")
      ->required();
  const std::map<std::string, TokenizerKind> kinds = {{"bpe", TokenizerKind::bpe},
                                                      {"unigram", TokenizerKind::unigram},
                                                      {"characters", TokenizerKind::characters},
                                                      {"bytes", TokenizerKind::bytes}};
  OptionGroup vocabulary(*command, "Vocabulary");
  vocabulary.add("--kind", arguments->kind, one_of({"bpe", "unigram", "characters", "bytes"}),
                 "How text is split into tokens");
  vocabulary
      .add("--vocab", options.vocabulary, whole_number(1, 1 << 30),
           "Size of the vocabulary; for characters, the maximum size")
      ->default_str("none; required for bpe and unigram");
  vocabulary.add("--character-coverage", options.character_coverage, number(0.98, 1),
                 "Fraction of the text that characters with a token must cover");
  vocabulary.flag("!--no-byte-fallback", options.byte_fallback,
                  "Encode characters without a token as <unk> instead of as bytes");
  vocabulary
      .add("--symbol", options.symbols, text("TEXT", "e.g. '<2de>'"),
           "Text that is always one token; may be given several times")
      ->allow_extra_args(false);
  vocabulary.flag("--split-digits", options.split_digits, "Make each digit a token");
  vocabulary.add("--max-lines", options.max_lines, whole_number(1, std::int64_t{1} << 40),
                 "Maximum lines to learn from; more lines are sampled");
  add_examples(*command, {"nunchi tokenizer train -i train.ko train.en -o mine.spm --vocab 8000",
                          "nunchi tokenizer train -i novel.txt -o letters.tok --kind characters"});
  command->callback([=, &job] {
    arguments->options.kind = kinds.at(arguments->kind);
    check_options(*command, *arguments);
    job = [=] { train(*arguments); };
  });
}

struct CodecCommand {
  const char* name;
  const char* summary;
  const char* ids_help;
  const char* example;
  void (*run)(const CodecArguments&);
};

void add_codec(CLI::App& tokenizer, Job& job, const CodecCommand& codec) {
  CLI::App* command = add_command(tokenizer, codec.name,
                                  std::string(codec.summary) +
                                      "\n\nReads standard input and writes one line to "
                                      "standard output for each line.")
                          ->group(kTokenizers);
  auto arguments = std::make_shared<CodecArguments>();
  OptionGroup(*command, kArguments)
      .add("MODEL", arguments->model, text("MODEL", "a .spm or .tok file, or a folder"),
           "Tokenizer, or a model folder that has one")
      ->required();
  OptionGroup options(*command, "Tokens");
  options.add("--side", arguments->side, one_of({"source", "target"}, "SIDE"),
              "Which tokenizer to use if the model folder has two");
  options.flag("--ids", arguments->ids, codec.ids_help);
  add_examples(*command, {codec.example});
  command->callback([=, &job] { job = [=] { codec.run(*arguments); }; });
}

}  // namespace

void add_tokenizer(CLI::App& program, Job& job) {
  CLI::App* tokenizer =
      add_command(program, "tokenizer", "Learn a tokenizer; encode and decode text")
          ->group(kTraining);
  tokenizer->require_subcommand(1);
  add_tokenizer_train(*tokenizer, job);
  add_codec(*tokenizer, job,
            {.name = "encode",
             .summary = "Split text into pieces",
             .ids_help = "Print token ids instead of pieces",
             .example = "echo 'a line of text' | nunchi tokenizer encode runs/demo",
             .run = encode});
  add_codec(*tokenizer, job,
            {.name = "decode",
             .summary = "Join pieces into text",
             .ids_help = "Read token ids instead of pieces",
             .example = "echo '5 9 13' | nunchi tokenizer decode runs/demo --ids",
             .run = decode});
}

}  // namespace nunchi::cli
