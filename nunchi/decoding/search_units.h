// Which sentences are in a search, and which units, slots of the cache and memory rows they hold.
// On the host only: what the device knows of them is in DecoderCache and search_memory.h.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <span>
#include <string>
#include <vector>

#include "nunchi/decoding/search_request.h"
#include "nunchi/nn/decoder_cache.h"

namespace nunchi {

// Whether the sentences of a request entered: all or none do.
struct Admission {
  std::vector<std::int64_t> ids;  // of the sentences, in order; empty: they were refused
  std::int64_t fitting = 0;       // sentences, from the first on, that would have fitted
  std::string refusal;            // why not all of them fit
};

// The cache outlives it.
class SearchUnits {
 public:
  // `has_source`: sentences hold rows of memory too.
  SearchUnits(nn::DecoderCache& cache, bool has_source);

  // A sentence that was admitted and not removed.
  struct Sentence : PlannedSentence {
    std::int64_t memory_begin = -1;  // first row of its memory; -1: it has none
    std::vector<std::int64_t> units = {};
    std::int64_t running = 0;  // units that are not known to be done
  };

  // Reserves all that the sentences can need, or refuses them and reserves nothing. Reserved
  // sentences have units, but no ids yet.
  Admission reserve(std::vector<Sentence>& sentences);
  // Gives ids to reserved sentences.
  std::vector<std::int64_t> add(std::vector<Sentence>&& sentences);

  // Provides the cache's slots for the next `steps` steps of all running units.
  void provide_slots(std::int64_t steps);
  // Records that all running units took `steps` steps.
  void advance(std::int64_t steps);
  // done[u] is not 0: unit u has finished. It gives its slots back; a sentence without running
  // units gives its memory back.
  void mark_done(std::span<const std::int32_t> done);
  // All running units have finished.
  void mark_all_done();

  // Calls f(id, sentence) for each sentence without running units, in the order in which they
  // entered, and removes them.
  void remove_finished_sentences(const std::function<void(std::int64_t id, const Sentence&)>& f);
  bool any_sentence_finished() const;
  // Removes all sentences.
  void clear();

  const Sentence& sentence(std::int64_t id) const;
  // Calls f(u) for each running unit.
  template <class F>
  void for_each_running(const F& f) const {
    for (std::size_t u = 0; u < units_.size(); ++u) {
      if (units_[u].running) f(static_cast<std::int64_t>(u));
    }
  }
  std::int64_t running_count() const { return running_; }
  std::int64_t free_count() const { return static_cast<std::int64_t>(free_.size()); }
  // Steps after which no unit that runs now is active.
  std::int64_t steps_left() const;
  // Tokens of the longest hypothesis after the next step.
  std::int64_t max_length_after_next_step() const;

 private:
  struct Unit {
    std::int64_t sentence = -1;    // id; -1: the unit is free
    bool running = false;          // not known to be done
    std::int64_t tokens_read = 0;  // tokens that the decoder has read, the steps under way included
    std::int64_t max_tokens_read = 0;  // tokens that it reads at most
  };
  std::string reserve(Sentence& sentence);
  void release(Sentence& sentence);
  void release_memory(Sentence& sentence);
  void finish(std::size_t unit);

  nn::DecoderCache& cache_;
  bool has_source_;
  std::vector<Unit> units_;
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> free_;
  std::map<std::int64_t, Sentence> sentences_;  // by id
  std::int64_t next_id_ = 0;
  std::int64_t running_ = 0;  // units that are not known to be done
};

}  // namespace nunchi
