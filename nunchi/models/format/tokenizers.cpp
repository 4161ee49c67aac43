#include "nunchi/models/format/tokenizers.h"

#include <algorithm>
#include <array>
#include <span>

#include "nunchi/base/atomic_file.h"
#include "nunchi/base/error.h"

namespace nunchi {
namespace {

constexpr const char* kShared = "tokenizer";
constexpr const char* kSource = "source";
constexpr const char* kTarget = "target";
constexpr const char* kExtensions[] = {".spm", ".tok"};

void write_file(const Tokenizer& tokenizer, const std::filesystem::path& folder, const char* stem) {
  AtomicFile file(folder / (std::string(stem) + "." + tokenizer.extension()));
  file.write(std::as_bytes(std::span(tokenizer.serialized())));
  file.commit();
}

void check_side(const Tokenizer& tokenizer, std::int64_t vocabulary, const std::string& where) {
  if (tokenizer.vocabulary() == vocabulary) return;
  throw Error(where + " has " + std::to_string(tokenizer.vocabulary()) +
              " tokens, but the model knows " + std::to_string(vocabulary) +
              "; they do not belong together.");
}

}  // namespace

Tokenizers::Tokenizers(std::unique_ptr<Tokenizer> shared, GenerationTokens tokens)
    : Tokenizers(std::move(shared), nullptr, std::move(tokens)) {}

Tokenizers::Tokenizers(std::unique_ptr<Tokenizer> source, std::unique_ptr<Tokenizer> target,
                       GenerationTokens tokens)
    : source_(std::move(source)),
      target_(std::move(target)),
      generation_tokens_(std::move(tokens)),
      decoder_(decoder_tokens(generation_tokens_, this->target().special())) {
  Tokens given = decoder_.suppressed;
  given.insert(given.end(), {decoder_.start, decoder_.end, decoder_.forced_first});
  for (const std::int32_t id : given) {
    if (id < this->target().vocabulary()) continue;
    throw Error("the special token " + std::to_string(id) + " of " + kGenerationConfig +
                " is not in the target's vocabulary of " +
                std::to_string(this->target().vocabulary()) + " tokens.");
  }
}

void Tokenizers::check_fit(const Model& model, const std::string& where) const {
  if (const auto* translation = ability_of<TranslationModel>(model)) {
    const InputSizes sizes = translation->input_sizes();
    if (sizes.source_feature_width == 0) {
      check_side(source(), sizes.source_vocabulary, where + ": the source tokenizer");
    }
    check_side(target(), translation->target_vocabulary(), where + ": the target tokenizer");
    return;
  }
  if (!shared()) {
    throw Error(where + ": the model has one vocabulary, but there are two tokenizers.");
  }
  if (const auto* text = ability_of<LanguageModel>(model)) {
    check_side(target(), text->target_vocabulary(), where + ": the tokenizer");
  }
  if (const auto* masked = ability_of<MaskedLanguageModel>(model)) {
    check_side(target(), masked->vocabulary(), where + ": the tokenizer");
  }
}

std::filesystem::path tokenizer_file(const std::filesystem::path& folder, const std::string& stem) {
  std::error_code ignored;
  for (const char* extension : kExtensions) {
    const std::filesystem::path path = folder / (stem + extension);
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return {};
}

std::vector<std::string> tokenizer_names() {
  std::vector<std::string> names;
  for (const std::string stem : {kShared, kSource, kTarget}) {
    for (const char* extension : kExtensions) names.push_back(stem + extension);
  }
  return names;
}

bool is_tokenizer_name(const std::filesystem::path& name) {
  const std::vector<std::string> known = tokenizer_names();
  return std::ranges::find(known, name.string()) != known.end();
}

bool has_tokenizers(const std::filesystem::path& folder) {
  return std::ranges::any_of(std::array{kShared, kSource, kTarget}, [&](const char* stem) {
    return !tokenizer_file(folder, stem).empty();
  });
}

Tokenizers load_tokenizers(const std::filesystem::path& folder) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    throw Error("'" + folder.string() + "' is not a model folder: there is no such folder.");
  }
  const std::filesystem::path shared = tokenizer_file(folder, kShared),
                              source = tokenizer_file(folder, kSource),
                              target = tokenizer_file(folder, kTarget);
  if (!shared.empty()) return Tokenizers(load_tokenizer(shared), load_generation_tokens(folder));
  if (!source.empty() && !target.empty()) {
    return {load_tokenizer(source), load_tokenizer(target), load_generation_tokens(folder)};
  }
  throw Error(
      "'" + folder.string() +
      "' has no tokenizer: neither tokenizer.spm nor source.spm and target.spm, nor the same "
      "with .tok. Copy the one that the model was trained with into it.");
}

void save_tokenizers(const Tokenizers& tokenizers, const std::filesystem::path& folder) {
  if (tokenizers.shared()) return write_file(tokenizers.source(), folder, kShared);
  write_file(tokenizers.source(), folder, kSource);
  write_file(tokenizers.target(), folder, kTarget);
}

}  // namespace nunchi
