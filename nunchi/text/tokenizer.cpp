#include "nunchi/text/tokenizer.h"

#include <algorithm>

#include "nunchi/base/random_access_file.h"
#include "nunchi/text/plain_tokenizer.h"
#include "nunchi/text/sentencepiece.h"

namespace nunchi {

double fallback_share(const Tokenizer& tokenizer, std::span<const std::int32_t> tokens) {
  if (tokens.empty()) return 0;
  const auto count =
      std::ranges::count_if(tokens, [&](std::int32_t id) { return tokenizer.is_fallback(id); });
  return static_cast<double>(count) / static_cast<double>(tokens.size());
}

std::unique_ptr<Tokenizer> make_tokenizer(std::string bytes, const std::string& name) {
  if (is_plain_tokenizer(bytes)) return make_plain_tokenizer(std::move(bytes), name);
  return make_sentencepiece(std::move(bytes), name);
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path) {
  return make_tokenizer(read_small_file(path), path.string());
}

}  // namespace nunchi
