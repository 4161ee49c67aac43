#include "nunchi/models/format/generation_tokens.h"

#include "nunchi/base/random_access_file.h"

namespace nunchi {

DecoderTokens decoder_tokens(const GenerationTokens& given, SpecialTokens target) {
  if (given.begin != kNoToken) target.begin = given.begin;
  if (given.end != kNoToken) target.end = given.end;
  if (given.pad != kNoToken) target.pad = given.pad;
  DecoderTokens tokens{
      .start = given.decoder_start != kNoToken ? given.decoder_start : decoder_tokens(target).start,
      .end = target.end,
      .forced_first = given.forced_first};
  tokens.suppress(std::vector{target.begin, target.pad, tokens.start});
  tokens.suppress(given.suppressed);
  return tokens;
}

GenerationTokens load_generation_tokens(const std::filesystem::path& folder) {
  GenerationTokens tokens;
  const std::filesystem::path path = folder / kGenerationConfig;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return tokens;
  const Options tree = Options::from_json(read_small_file(path), path.string());
  OptionReader reader(tree);  // decoding/generation_config.h reads the other keys
  GenerationTokens::visit_fields(reader, tokens);
  return tokens;
}

}  // namespace nunchi
