// The input of an encoder: a batch of sentences of tokens, or of examples made of rows of features.
// The input of an ensemble can be one such batch for each member.
#pragma once

#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "nunchi/data/feature_batch.h"
#include "nunchi/data/token_batch.h"

namespace nunchi {

class Source;

// The same sentences as the members of an ensemble read them, each with its own tokenizer.
struct MemberSources {
  std::vector<Source> sources;  // one for each member, all with the same number of sentences
  Ragged rows;                  // the length of a sentence is that of its longest version
};

// Copies share their tensors.
class Source {
 public:
  Source() = default;  // a batch without sentences
  Source(TokenBatch tokens) : input_(std::move(tokens)) {}
  Source(FeatureBatch features) : input_(std::move(features)) {}
  Source(MemberSources members) : input_(std::move(members)) {}

  // Null when the source is of another kind.
  const TokenBatch* tokens() const { return std::get_if<TokenBatch>(&input_); }
  const FeatureBatch* features() const { return std::get_if<FeatureBatch>(&input_); }
  const MemberSources* members() const { return std::get_if<MemberSources>(&input_); }

  // Which rows belong to which sentence.
  const Ragged& rows() const {
    return std::visit([](const auto& batch) -> const Ragged& { return batch.rows; }, input_);
  }
  // The context that holds the source.
  ContextBase& context() const { return rows().offsets.context(); }

 private:
  std::variant<TokenBatch, FeatureBatch, MemberSources> input_;
};

// Throws Error when there is no source or the numbers of sentences differ.
MemberSources make_member_sources(std::vector<Source> sources);

// The sources of a batch on the host.
using SourceExamples = std::variant<std::vector<Tokens>, std::vector<Features>>;

inline std::size_t example_count(const SourceExamples& examples) {
  return std::visit([](const auto& list) { return list.size(); }, examples);
}
// Throws Error when they are features.
const std::vector<Tokens>& tokens_of(const SourceExamples& examples);

// The sizes of a model's input and output, set by its tokenizers and data.
struct InputSizes {
  std::int64_t source_vocabulary = 0;  // 0 without a source of tokens
  std::int64_t target_vocabulary = 0;
  std::int64_t source_feature_width = 0;  // F; 0: the source consists of tokens
};

// See make_token_batch for `first_sentence`. Throws Error when the model reads another kind of
// source.
Source make_source(ContextBase& context, const SourceExamples& examples, const InputSizes& sizes,
                   std::int32_t first_sentence = 0);

}  // namespace nunchi
