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

void save(const SearchOptions& options, const GenerationTokens& tokens, const AlignmentHeads& heads,
          const std::filesystem::path& folder) {
  OptionWriter writer;
  visit_fields(writer, options);
  GenerationTokens::visit_fields(writer, tokens);
  visit_alignment_heads(writer, heads);
  const std::string text = to_json(writer.tree());
  AtomicFile file(folder / kGenerationConfig);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace

SearchOptions load_generation_config(const std::filesystem::path& folder) {
  SearchOptions options;
  const std::filesystem::path path = folder / kGenerationConfig;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return options;
  const Options tree = Options::from_json(read_small_file(path), path.string());
  OptionReader reader(tree);
  visit_fields(reader, options);
  // Parsed only to validate them; load_generation_tokens() and load_alignment_heads() return them.
  GenerationTokens tokens;
  GenerationTokens::visit_fields(reader, tokens);
  AlignmentHeads heads;
  visit_alignment_heads(reader, heads);
  reader.finish();
  try {
    options.check();
  } catch (const UsageError& error) {
    // The file is wrong, not the call.
    throw Error(path.string() + ": " + error.what());
  }
  return options;
}

void save_generation_config(const SearchOptions& options, const GenerationTokens& tokens,
                            const std::filesystem::path& folder) {
  save(options, tokens, {}, folder);
}

void save_alignment_heads(const AlignmentHeads& heads, const std::filesystem::path& folder) {
  save(load_generation_config(folder), load_generation_tokens(folder), heads, folder);
}

}  // namespace nunchi
