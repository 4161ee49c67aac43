#include "nunchi/inference/model_folder.h"

#include "nunchi/decoding/generation_config.h"
#include "nunchi/models/format/folder.h"

namespace nunchi {
namespace {

std::unique_ptr<Model> load(ContextBase& context, const std::filesystem::path& folder,
                            const AbilityCheck& check) {
  std::unique_ptr<Model> model = configured_model(folder);
  if (check) check(*model);
  load_weights(*model, folder, context);
  return model;
}

}  // namespace

ModelFolder::ModelFolder(ContextBase& context, const std::filesystem::path& folder,
                         const AbilityCheck& check)
    : model_(load(context, folder, check)),
      tokenizers_(load_tokenizers(folder)),
      search_(load_generation_config(folder)),
      alignment_heads_(load_alignment_heads(folder)),
      typical_scores_(load_typical_scores(folder)) {
  tokenizers_.check_fit(*model_, folder.string());
}

}  // namespace nunchi
