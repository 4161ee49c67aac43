#include "nunchi/decoding/generation_config.h"

#include "nunchi/base/atomic_file.h"
#include "nunchi/base/error.h"
#include "nunchi/base/json_options.h"
#include "nunchi/base/options.h"
#include "nunchi/base/random_access_file.h"

namespace nunchi {
namespace {

void visit_fields(auto& visitor, auto& options) {
  visitor.integer("num_beams", options.beam_size, 1, 4096);
  visitor.number("length_penalty", options.normalize, 0, 100);
  visitor.integer("min_length", options.min_length, 0, kMaxGenerationLength);
  visitor.integer("max_length", options.max_length, 1, kMaxGenerationLength);
  visitor.integer("no_repeat_ngram_size", options.no_repeat_ngram, 0, 1 << 20);
}

void visit_typical_scores(auto& visitor, auto& typical) {
  visitor.map("typical_scores", typical,
              [](auto& in_map, auto& scores) { TypicalScores::visit_fields(in_map, scores); });
}

// The file as a tree; none if the folder has no such file.
std::optional<Options> read_tree(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kGenerationConfig;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  return Options::from_json(read_small_file(path), path.string());
}

struct Contents {
  SearchOptions options;
  GenerationTokens tokens;
  AlignmentHeads heads;
  std::optional<TypicalScores> typical;
};

void save(const Contents& contents, const std::filesystem::path& folder) {
  OptionWriter writer;
  visit_fields(writer, contents.options);
  GenerationTokens::visit_fields(writer, contents.tokens);
  visit_alignment_heads(writer, contents.heads);
  visit_typical_scores(writer, contents.typical);
  const std::string text = to_json(writer.tree());
  AtomicFile file(folder / kGenerationConfig);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace

SearchOptions load_generation_config(const std::filesystem::path& folder) {
  SearchOptions options;
  const std::optional<Options> tree = read_tree(folder);
  if (!tree) return options;
  OptionReader reader(*tree);
  visit_fields(reader, options);
  // Parsed only to validate them; other functions return them.
  GenerationTokens tokens;
  GenerationTokens::visit_fields(reader, tokens);
  AlignmentHeads heads;
  visit_alignment_heads(reader, heads);
  std::optional<TypicalScores> typical;
  visit_typical_scores(reader, typical);
  reader.finish();
  try {
    options.check();
  } catch (const UsageError& error) {
    // The file is wrong, not the call.
    throw Error((folder / kGenerationConfig).string() + ": " + error.what());
  }
  return options;
}

std::optional<TypicalScores> load_typical_scores(const std::filesystem::path& folder) {
  std::optional<TypicalScores> typical;
  const std::optional<Options> tree = read_tree(folder);
  if (!tree) return typical;
  OptionReader reader(*tree);  // the other functions read the other keys
  visit_typical_scores(reader, typical);
  return typical;
}

void save_generation_config(const SearchOptions& options, const GenerationTokens& tokens,
                            const std::filesystem::path& folder,
                            const std::optional<TypicalScores>& typical) {
  save({.options = options, .tokens = tokens, .heads = {}, .typical = typical}, folder);
}

void save_alignment_heads(const AlignmentHeads& heads, const std::filesystem::path& folder) {
  save({.options = load_generation_config(folder),
        .tokens = load_generation_tokens(folder),
        .heads = heads,
        .typical = load_typical_scores(folder)},
       folder);
}

}  // namespace nunchi
