#include "nunchi/decoding/search_units.h"

#include <algorithm>

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

std::string count_of(std::int64_t count, const std::string& things) {
  return std::to_string(count) + " " + things + (count == 1 ? "" : "s");
}

bool is_finished(const std::pair<const std::int64_t, SearchUnits::Sentence>& entry) {
  return entry.second.running == 0;
}

}  // namespace

SearchUnits::SearchUnits(nn::DecoderCache& cache, bool has_source)
    : cache_(cache), has_source_(has_source), units_(index(cache.limits().units)) {
  for (std::int64_t u = 0; u < cache.limits().units; ++u) free_.push(u);
}

Admission SearchUnits::reserve(std::vector<Sentence>& sentences) {
  Admission admission;
  const std::int64_t first_rows = cache_.free_first_rows();
  std::int64_t entering = 0;
  for (Sentence& sentence : sentences) {
    entering += sentence.sample_count();
    admission.refusal = reserve(sentence);
    if (admission.refusal.empty() && entering > first_rows) {
      admission.refusal = "as many units as there are have entered since the last step";
    }
    if (!admission.refusal.empty()) break;
    ++admission.fitting;
  }
  if (admission.refusal.empty()) return admission;
  admission.refusal = "only " + std::to_string(admission.fitting) + " of " +
                      count_of(std::ssize(sentences), "sentence") +
                      " can enter the search: " + admission.refusal + ".";
  for (Sentence& sentence : sentences) release(sentence);
  return admission;
}

// Returns what is missing, in words, where too little is free; part of it may be reserved then.
std::string SearchUnits::reserve(Sentence& sentence) {
  const nn::CacheLimits& limits = cache_.limits();
  if (has_source_) {
    const auto begin = cache_.take_memory(sentence.source_length);
    if (!begin) {
      return "a source needs " + count_of(sentence.source_length, "adjacent row") + ", and " +
             std::to_string(cache_.free_memory_rows()) + " of " +
             std::to_string(limits.memory_rows) + " are free";
    }
    sentence.memory_begin = *begin;
  }
  const std::int64_t max_length = sentence.max_tokens_read();
  for (std::int64_t i = 0; i < sentence.sample_count(); ++i) {
    if (free_.empty()) return "all " + count_of(limits.units, "unit") + " are taken";
    const std::int64_t u = free_.top();
    if (!cache_.admit(u, {.prompt = sentence.prompt,
                          .max_length = max_length,
                          .memory_begin = std::max<std::int64_t>(0, sentence.memory_begin),
                          .memory_length = sentence.source_length})) {
      return "a unit can need " + std::to_string(limits.slots_for(sentence.prompt, max_length)) +
             " slots of the cache, and " + std::to_string(cache_.free_slots()) + " of " +
             std::to_string(limits.slots) + " are free";
    }
    free_.pop();
    sentence.units.push_back(u);
    units_[index(u)] = {
        .running = true, .tokens_read = sentence.prompt, .max_tokens_read = max_length};
    ++sentence.running;
    ++running_;
  }
  return {};
}

std::vector<std::int64_t> SearchUnits::add(std::vector<Sentence>&& sentences) {
  std::vector<std::int64_t> ids;
  for (Sentence& sentence : sentences) {
    for (const std::int64_t u : sentence.units) units_[index(u)].sentence = next_id_;
    ids.push_back(next_id_);
    sentences_.emplace(next_id_++, std::move(sentence));
  }
  return ids;
}

// Gives back all that a sentence still has.
void SearchUnits::release(Sentence& sentence) {
  for (const std::int64_t u : sentence.units) {
    if (units_[index(u)].running) {
      cache_.release(u);
      --running_;
    }
    units_[index(u)] = {};
    free_.push(u);
  }
  sentence.units.clear();
  release_memory(sentence);
}

void SearchUnits::release_memory(Sentence& sentence) {
  if (sentence.memory_begin < 0) return;
  cache_.release_memory(sentence.memory_begin, sentence.source_length);
  sentence.memory_begin = -1;
}

void SearchUnits::provide_slots(std::int64_t steps) {
  for_each_running([&](std::int64_t u) {
    const Unit& unit = units_[index(u)];
    cache_.provide_slots(u, std::min(unit.tokens_read + steps, unit.max_tokens_read));
  });
}

void SearchUnits::advance(std::int64_t steps) {
  for (Unit& unit : units_) {
    if (unit.running) unit.tokens_read = std::min(unit.tokens_read + steps, unit.max_tokens_read);
  }
}

void SearchUnits::finish(std::size_t unit) {
  units_[unit].running = false;
  --running_;
  cache_.release(static_cast<std::int64_t>(unit));
  Sentence& sentence = sentences_.at(units_[unit].sentence);
  if (--sentence.running == 0) release_memory(sentence);
}

void SearchUnits::mark_done(std::span<const std::int32_t> done) {
  for (std::size_t u = 0; u < units_.size(); ++u) {
    if (units_[u].running && done[u] != 0) finish(u);
  }
}

void SearchUnits::mark_all_done() {
  for (std::size_t u = 0; u < units_.size(); ++u) {
    if (units_[u].running) finish(u);
  }
}

bool SearchUnits::any_sentence_finished() const {
  return std::ranges::any_of(sentences_, is_finished);
}

void SearchUnits::remove_finished_sentences(
    const std::function<void(std::int64_t id, const Sentence&)>& f) {
  for (auto entry = sentences_.begin(); entry != sentences_.end();) {
    if (!is_finished(*entry)) {
      ++entry;
      continue;
    }
    f(entry->first, entry->second);
    release(entry->second);
    entry = sentences_.erase(entry);
  }
}

void SearchUnits::clear() {
  for (auto& [id, sentence] : sentences_) release(sentence);
  sentences_.clear();
}

const SearchUnits::Sentence& SearchUnits::sentence(std::int64_t id) const {
  const auto entry = sentences_.find(id);
  if (entry == sentences_.end()) {
    throw Error("there is no sentence " + std::to_string(id) + " in the search (internal error).");
  }
  return entry->second;
}

std::int64_t SearchUnits::steps_left() const {
  std::int64_t steps = 0;
  for_each_running([&](std::int64_t u) {
    steps = std::max(steps, units_[index(u)].max_tokens_read - units_[index(u)].tokens_read);
  });
  return steps;
}

std::int64_t SearchUnits::max_length_after_next_step() const {
  std::int64_t max_length = 0;
  for_each_running(
      [&](std::int64_t u) { max_length = std::max(max_length, units_[index(u)].tokens_read + 1); });
  return max_length;
}

}  // namespace nunchi
