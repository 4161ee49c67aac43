#include "nunchi/models/format/alignment_heads.h"

#include "nunchi/base/random_access_file.h"
#include "nunchi/models/format/generation_tokens.h"

namespace nunchi {

AlignmentHeads load_alignment_heads(const std::filesystem::path& folder) {
  AlignmentHeads heads;
  const std::filesystem::path path = folder / kGenerationConfig;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return heads;
  const Options tree = Options::from_json(read_small_file(path), path.string());
  OptionReader reader(tree);  // decoding/generation_config.h reads the other keys
  visit_alignment_heads(reader, heads);
  return heads;
}

}  // namespace nunchi
