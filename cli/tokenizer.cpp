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

struct CodeArguments {
  std::string model;
  std::string side;  // "source", "target" or not given
  bool ids = false;
};

// The tokenizer's file: `model` itself, or the one in a model folder.
fs::path file_of(const CodeArguments& arguments) {
  const fs::path model = arguments.model;
  std::error_code ignored;  // what cannot be looked at is complained about when it is opened
  if (!fs::is_directory(model, ignored)) {
    if (arguments.side.empty()) return model;
    throw UsageError("--side is for a model folder, which may have two tokenizers; '" +
                     model.string() + "' is one.");
  }
  if (const fs::path shared = tokenizer_file(model, "tokenizer"); !shared.empty()) return shared;
  if (arguments.side.empty()) {
    const bool has_sides = !tokenizer_file(model, "source").empty();
    throw Error(fmt::format(
        "'{}' has no tokenizer.spm or tokenizer.tok{}", model.string(),
        has_sides ? ", but one for each side: say --side source or --side target." : "."));
  }
  const fs::path of_side = tokenizer_file(model, arguments.side);
  return of_side.empty() ? model / (arguments.side + ".spm") : of_side;
}

std::string counted(std::int64_t count, const char* one, const char* many) {
  return count == 1 ? fmt::format("1 {}", one) : fmt::format("{} {}", grouped(count), many);
}

// What was not as it should be in the input, said once at its end.
struct Complaints {
  std::int64_t invalid_lines = 0;
  std::int64_t unknown_tokens = 0;

  void print(const LineSource& lines) const {
    if (invalid_lines > 0) {
      fmt::print(stderr, "nunchi: {} with invalid UTF-8, read as U+FFFD.\n",
                 counted(invalid_lines, "line", "lines"));
    }
    if (unknown_tokens > 0) {
      fmt::print(stderr, "nunchi: {} not in the vocabulary, read as <unk>.\n",
                 counted(unknown_tokens, "token is", "tokens are"));
    }
    if (lines.cut_lines() > 0) {
      fmt::print(stderr, "nunchi: {} longer than 1 MiB, cut there.\n",
                 counted(lines.cut_lines(), "line was", "lines were"));
    }
  }
};

void train(const TrainArguments& arguments) {
  // First of all, so that a folder that cannot be written to is known before the work.
  AtomicFile file(arguments.output);
  const RemovedWhenStopped removed(file.temporary(), arguments.output);
  std::unique_ptr<LineReader> reader;
  auto input = arguments.inputs.begin();
  const auto next_line = [&](std::string& line) {
    while (true) {
      if (reader && reader->next(line)) return true;
      if (input == arguments.inputs.end()) return false;
      reader = std::make_unique<LineReader>(*input++);
    }
  };
  const LearnedTokenizer learned = learn_tokenizer(arguments.options, next_line);
  file.write(std::as_bytes(std::span(learned.bytes)));
  file.commit();
  const std::string tokens =
      grouped(make_tokenizer(learned.bytes, arguments.output)->vocabulary()) + " tokens";
  if (arguments.options.kind == TokenizerKind::bytes) {
    fmt::print(stderr, "{}: {}, the same for every text.\n", arguments.output, tokens);
    return;
  }
  fmt::print(stderr, "{}: {}, learned from {}{}.\n", arguments.output, tokens,
             counted(learned.lines_used, "line", "lines"),
             learned.lines_used < learned.lines ? " of " + grouped(learned.lines) : "");
}

// Whoever sends lines one at a time gets each answer before the next.
void answer(const std::string& text, LineSource& lines) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (!lines.is_waiting()) std::fflush(stdout);
}

void encode(const CodeArguments& arguments) {
  const auto tokenizer = load_tokenizer(file_of(arguments));
  LineStream lines(STDIN_FILENO);
  Complaints complaints;
  std::string out;
  for (std::string line; lines.next(line);) {
    if (!is_valid_utf8(line)) ++complaints.invalid_lines;
    out.clear();
    for (const std::int32_t id : tokenizer->encode(line)) {
      if (!out.empty()) out += ' ';
      out += arguments.ids ? std::to_string(id) : tokenizer->piece(id);
    }
    out += '\n';
    answer(out, lines);
  }
  complaints.print(lines);
}

// Reads one token of a line, a piece or a number; <unk> (0) for what is neither.
class TokenReader {
 public:
  TokenReader(const Tokenizer& tokenizer, bool ids) : vocabulary_(tokenizer.vocabulary()) {
    if (ids) return;
    for (std::int32_t id = 0; id < vocabulary_; ++id) pieces_.emplace(tokenizer.piece(id), id);
  }

  std::int32_t read(std::string_view word, Complaints& complaints) const {
    std::int32_t id = -1;
    if (!pieces_.empty()) {
      const auto found = pieces_.find(std::string(word));
      if (found != pieces_.end()) id = found->second;
    } else {
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
      if (error != std::errc() || end != word.data() + word.size()) id = -1;
    }
    if (id >= 0 && id < vocabulary_) return id;
    ++complaints.unknown_tokens;
    return 0;
  }

 private:
  std::int64_t vocabulary_;
  std::unordered_map<std::string, std::int32_t> pieces_;  // empty when numbers are read
};

void decode(const CodeArguments& arguments) {
  const auto tokenizer = load_tokenizer(file_of(arguments));
  const TokenReader reader(*tokenizer, arguments.ids);
  LineStream lines(STDIN_FILENO);
  Complaints complaints;
  for (std::string line; lines.next(line);) {
    Tokens tokens;
    for (std::string_view rest = line; !rest.empty();) {
      const std::string_view word = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      if (!word.empty()) tokens.push_back(reader.read(word, complaints));
    }
    std::string text = tokenizer->decode(tokens);
    // The byte pieces can spell a line break; one line stays one line.
    std::ranges::replace(text, '\n', ' ');
    text += '\n';
    answer(text, lines);
  }
  complaints.print(lines);
}

// The two formats have endings, by which people and model folders know them.
void check_ending(const TrainArguments& arguments, bool pieces) {
  const std::string ending = fs::path(arguments.output).extension().string();
  const char* own = pieces ? ".spm" : ".tok";
  if (ending != (pieces ? ".tok" : ".spm")) return;
  throw UsageError(fmt::format("a tokenizer of {} is a {} file, and '{}' promises another.",
                               arguments.kind, own, arguments.output));
}

void add_tokenizer_train(CLI::App& tokenizer) {
  CLI::App* command = tokenizer.add_subcommand("train", "Learn a tokenizer from text");
  auto arguments = std::make_shared<TrainArguments>();
  TokenizerOptions& options = arguments->options;
  command->add_option("--input", arguments->inputs, "Text files, plain or .gz or .xz")->required();
  command
      ->add_option("--output", arguments->output,
                   "The file to write: NAME.spm, or NAME.tok for characters and bytes")
      ->required();
  const std::map<std::string, TokenizerKind> kinds = {{"bpe", TokenizerKind::bpe},
                                                      {"unigram", TokenizerKind::unigram},
                                                      {"characters", TokenizerKind::characters},
                                                      {"bytes", TokenizerKind::bytes}};
  command->add_option("--kind", arguments->kind, "bpe, unigram, characters or bytes")
      ->check(CLI::IsMember(kinds))
      ->capture_default_str();
  CLI::Option* vocabulary =
      command->add_option("--vocab", options.vocabulary, "Tokens in all; of characters at most");
  command->add_flag("!--no-byte-fallback", options.byte_fallback,
                    "Characters without a piece become <unk> instead of their bytes");
  command
      ->add_option("--character-coverage", options.character_coverage,
                   "Share of the text whose characters get a piece, 0.98 to 1")
      ->capture_default_str();
  command->add_option("--symbol", options.symbols, "Always one token, e.g. '<2de>'; may come often")
      ->allow_extra_args(false);
  command->add_flag("--split-digits", options.split_digits, "Every digit is a token of its own");
  command->add_option("--max-lines", options.max_lines, "Sample so many lines if there are more")
      ->capture_default_str();
  command->callback([=] {
    const TokenizerKind kind = arguments->options.kind = kinds.at(arguments->kind);
    const bool pieces = kind == TokenizerKind::bpe || kind == TokenizerKind::unigram;
    if (pieces && !*vocabulary)
      throw UsageError("bpe and unigram need --vocab, the tokens in all.");
    const auto refuse = [&](const char* name, const char* why) {
      if (command->count(name) == 0) return;
      throw UsageError(fmt::format("{} has no effect: {}.", name, why));
    };
    for (const char* name : {"--vocab", "--character-coverage"}) {
      if (kind == TokenizerKind::bytes) refuse(name, "there are 256 bytes, whatever the text");
    }
    for (const char* name : {"--no-byte-fallback", "--symbol", "--split-digits", "--max-lines"}) {
      if (!pieces) refuse(name, "--kind is neither bpe nor unigram");
    }
    check_ending(*arguments, pieces);
    train(*arguments);
  });
}

struct CodeCommand {
  const char* name;
  const char* help;
  const char* ids_help;
  void (*run)(const CodeArguments&);
};

void add_code(CLI::App& tokenizer, const CodeCommand& does) {
  CLI::App* command = tokenizer.add_subcommand(does.name, does.help);
  auto arguments = std::make_shared<CodeArguments>();
  command->add_option("MODEL", arguments->model, "A .spm or .tok file, or a model folder")
      ->required();
  command->add_option("--side", arguments->side, "In a folder with two: source or target")
      ->check(CLI::IsMember({"source", "target"}));
  command->add_flag("--ids", arguments->ids, does.ids_help);
  command->callback([=] { does.run(*arguments); });
}

}  // namespace

void add_tokenizer(CLI::App& program) {
  CLI::App* tokenizer =
      program.add_subcommand("tokenizer", "Learn a tokenizer; text to tokens and back");
  tokenizer->require_subcommand(1);
  add_tokenizer_train(*tokenizer);
  add_code(*tokenizer, {"encode", "Text to pieces, a line for a line, stdin to stdout",
                        "Numbers instead of pieces", encode});
  add_code(*tokenizer, {"decode", "Pieces to text, a line for a line, stdin to stdout",
                        "Numbers instead of pieces", decode});
}

}  // namespace nunchi::cli
