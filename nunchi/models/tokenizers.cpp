#include "nunchi/models/tokenizers.h"

#include <span>

#include "nunchi/base/atomic_file.h"
#include "nunchi/base/error.h"

namespace nunchi {
namespace {

constexpr const char* kShared = "tokenizer.spm";
constexpr const char* kSource = "source.spm";
constexpr const char* kTarget = "target.spm";

void write_file(const Tokenizer& tokenizer, const std::filesystem::path& path) {
  AtomicFile file(path);
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

void Tokenizers::check_fit(const TranslationModel& model, const std::string& where) const {
  check_side(source(), model.source_vocabulary(), where + ": the source tokenizer");
  check_side(target(), model.target_vocabulary(), where + ": the target tokenizer");
}

Tokenizers load_tokenizers(const std::filesystem::path& folder) {
  std::error_code ignored;
  const auto has = [&](const char* name) {
    return std::filesystem::exists(folder / name, ignored);
  };
  if (!std::filesystem::is_directory(folder, ignored)) {
    throw Error("'" + folder.string() + "' is not a model folder: there is no such folder.");
  }
  if (has(kShared)) return Tokenizers(load_tokenizer(folder / kShared));
  if (has(kSource) && has(kTarget)) {
    return {load_tokenizer(folder / kSource), load_tokenizer(folder / kTarget)};
  }
  throw Error("'" + folder.string() + "' has no tokenizer: neither " + kShared + " nor " + kSource +
              " and " + kTarget + ". Copy the one that the model was trained with into it.");
}

void save_tokenizers(const Tokenizers& tokenizers, const std::filesystem::path& folder) {
  if (tokenizers.shared()) return write_file(tokenizers.source(), folder / kShared);
  write_file(tokenizers.source(), folder / kSource);
  write_file(tokenizers.target(), folder / kTarget);
}

}  // namespace nunchi
