#include "nunchi/data/source.h"

#include <algorithm>
#include <string>

#include "nunchi/base/error.h"
#include "nunchi/ops/tensors.h"

namespace nunchi {

MemberSources make_member_sources(std::vector<Source> sources) {
  if (sources.empty()) throw Error("an ensemble needs at least one source.");
  std::vector<std::int32_t> lengths = sources.front().rows().lengths;
  for (const Source& source : sources) {
    const std::vector<std::int32_t>& others = source.rows().lengths;
    if (others.size() != lengths.size()) {
      throw Error("the members of an ensemble got sources of " + std::to_string(lengths.size()) +
                  " and of " + std::to_string(others.size()) + " sentences.");
    }
    for (std::size_t b = 0; b < lengths.size(); ++b) lengths[b] = std::max(lengths[b], others[b]);
  }
  ContextBase& context = sources.front().context();
  return {.sources = std::move(sources), .rows = make_ragged(context, lengths)};
}

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
