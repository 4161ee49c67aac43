#include "nunchi/data/source.h"

#include <string>

#include "nunchi/base/error.h"

namespace nunchi {

const std::vector<Tokens>& tokens_of(const SourceExamples& examples) {
  const auto* tokens = std::get_if<std::vector<Tokens>>(&examples);
  if (tokens == nullptr) throw Error("the sources consist of features, but tokens are expected.");
  return *tokens;
}

Source make_source(ContextBase& context, const SourceExamples& examples, const InputSizes& sizes,
                   std::int32_t first_sentence) {
  if (sizes.source_feature_width == 0) {
    return make_token_batch(context, tokens_of(examples), sizes.source_vocabulary, first_sentence);
  }
  const auto* features = std::get_if<std::vector<Features>>(&examples);
  if (features == nullptr) {
    throw Error("the model reads features, but the sources consist of tokens.");
  }
  return make_feature_batch(context, *features, sizes.source_feature_width, first_sentence);
}

}  // namespace nunchi
