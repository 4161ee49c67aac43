#include "nunchi/models/ensemble.h"

#include <algorithm>
#include <string>

#include "nunchi/base/error.h"
#include "nunchi/ops/decode/mean_probabilities.h"

namespace nunchi {
namespace {

// The cache of the ensemble itself keeps no keys: the members' caches follow it.
struct EnsembleState final : SequenceModel::State {
  EnsembleState(ContextBase& context, const nn::CacheLimits& limits) : State(context, {}, limits) {}

  std::vector<std::unique_ptr<State>> members;
};

}  // namespace

EnsembleModel::EnsembleModel(std::vector<const EncoderDecoder*> members)
    : members_(std::move(members)) {
  if (members_.empty() || members_.size() > kMaxMeanScores) {
    throw Error("an ensemble has from 1 to " + std::to_string(kMaxMeanScores) + " models, not " +
                std::to_string(members_.size()) + ".");
  }
  for (const EncoderDecoder* member : members_) {
    if (member->target_vocabulary() == target_vocabulary()) continue;
    throw Error("models with target vocabularies of " + std::to_string(target_vocabulary()) +
                " and " + std::to_string(member->target_vocabulary()) +
                " tokens cannot form an ensemble.");
  }
}

std::int64_t EnsembleModel::target_vocabulary() const {
  return members_.front()->target_vocabulary();
}

std::int64_t EnsembleModel::max_length() const {
  std::int64_t length = kUnlimitedLength;
  for (const EncoderDecoder* member : members_) length = std::min(length, member->max_length());
  return length;
}

std::unique_ptr<SequenceModel::State> EnsembleModel::make_state(
    ContextBase& context, const nn::CacheLimits& limits) const {
  auto state = std::make_unique<EnsembleState>(context, limits);
  for (const EncoderDecoder* member : members_) {
    state->members.push_back(member->make_state(context, limits));
    state->cache.add_follower(state->members.back()->cache);
  }
  return state;
}

// All members' memories of a sentence begin at the same row. A member whose source is shorter than
// the longest one sees fewer rows of its memory.
void EnsembleModel::add_sources(State& any_state, const Source& source,
                                std::span<const std::int64_t> memory_begin) const {
  auto& state = static_cast<EnsembleState&>(any_state);
  const MemberSources* const own = source.members();
  if (own != nullptr && own->sources.size() != members_.size()) {
    throw Error("an ensemble of " + std::to_string(members_.size()) + " models got " +
                std::to_string(own->sources.size()) + " sources.");
  }
  for (std::size_t m = 0; m < members_.size(); ++m) {
    const Source& of_member = own != nullptr ? own->sources[m] : source;
    const std::vector<std::int32_t>& lengths = of_member.rows().lengths;
    nn::DecoderCache& cache = state.members[m]->cache;
    for (std::size_t b = 0; b < lengths.size(); ++b) {
      cache.set_memory_length(memory_begin[b], lengths[b]);
    }
    cache.publish();
    members_[m]->add_sources(*state.members[m], of_member, memory_begin);
  }
}

Tensor EnsembleModel::step(State& any_state, const nn::StepTokens& tokens) const {
  auto& state = static_cast<EnsembleState&>(any_state);
  state.cache.record_step(tokens);
  std::vector<Tensor> scores;
  for (std::size_t m = 0; m < members_.size(); ++m) {
    scores.push_back(members_[m]->next_scores(members_[m]->step(*state.members[m], tokens)));
  }
  return mean_probabilities(scores);
}

bool EnsembleModel::prepare_replay(State& any_state) const {
  auto& state = static_cast<EnsembleState&>(any_state);
  bool moved = false;
  for (std::size_t m = 0; m < members_.size(); ++m) {
    moved = members_[m]->prepare_replay(*state.members[m]) || moved;
  }
  return moved;
}

}  // namespace nunchi
