// Chooses the heads that align words best, and counts how often they are right. Both need pairs of
// sentences whose word links are known.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "nunchi/inference/alignment.h"
#include "nunchi/models/format/tokenizers.h"

namespace nunchi {

// Words are separated by spaces.
struct LinkedPair {
  std::string source, target;
  // Target words without a link are not counted; of several links of a word, each is right.
  std::vector<WordLink> links;
};

struct AlignmentCount {
  std::int64_t right = 0;  // words whose strongest source word is one that they translate
  std::int64_t words = 0;  // words with a link

  double accuracy() const {
    return words == 0 ? 0 : static_cast<double>(right) / static_cast<double>(words);
  }
};

// The attention of a model over linked pairs, between words.
class LinkedAttention {
 public:
  // Runs the model on the given targets. Throws Error when the model cannot translate or has no
  // cross-attention. Pairs that the tokenizers do not split at their spaces are left out.
  LinkedAttention(ContextBase& context, const Model& model, const Tokenizers& tokenizers,
                  std::span<const LinkedPair> pairs);

  // For these heads; the default ones if none are given. </s> is never the strongest source word.
  AlignmentCount count(const AlignmentHeads& heads) const;

  // The heads with the largest count that a search finds: from the best single head and from the
  // default heads, it adds or removes the head that increases the count most, as long as one does.
  // Empty without words to count.
  AlignmentHeads best_heads() const;

  int layers() const { return layers_; }
  int heads() const { return heads_; }

 private:
  // A target word with links.
  struct Word {
    std::size_t target = 0;      // its index in its sentence
    std::size_t sources = 0;     // source words, without </s>
    std::vector<int> right;      // indices of source words
    std::vector<float> weights;  // [L, H, sources]
  };

  void add(const CrossAttention& attention, std::vector<std::string> sources,
           std::vector<std::string> targets, const LinkedPair& pair);
  void add_words(const LinkedPair& pair, std::size_t sources);
  AlignmentHeads improved(AlignmentHeads heads) const;
  AlignmentHeads all_heads() const;

  int layers_ = 0, heads_ = 0;
  std::vector<Word> words_;
};

}  // namespace nunchi
