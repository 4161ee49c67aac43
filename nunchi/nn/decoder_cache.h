// What a decoder remembers while it generates: the keys and values of every token so far.
//
// Each token has a slot, a row of the cache [slots, 2 kv_heads · D] of every layer. A table says
// which slots a hypothesis consists of, so that hypotheses share what they have in common, and a
// beam is reordered by copying indices only.
//
// The cache is shared by the units of a search (kernels/search.h), which enter and leave between
// steps. A unit owns its slots (nn/slot_blocks.h) and, if it has a source, the rows of its memory;
// both have hard bounds. Everything that changes from step to step is in device memory, so that a
// step can be captured and replayed.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "nunchi/nn/embedding.h"
#include "nunchi/nn/row_ranges.h"
#include "nunchi/nn/slot_blocks.h"
#include "nunchi/ops/decode/decode_attention.h"
#include "nunchi/tensor/ragged.h"

namespace nunchi::nn {

// The tokens that a step feeds to the decoder: one for each hypothesis or several, one hypothesis
// after another. All tensors are i32.
//
// In the first step of units (no parents) each unit has one hypothesis, which becomes a row of the
// table beyond those of the active hypotheses: see DecoderCache::next_first_row. In a later step
// the hypotheses of all active units take part.
struct StepTokens {
  std::int64_t hypotheses = 0;  // H
  std::int64_t tokens = 0;      // of all hypotheses
  // No hypothesis is longer after this step; 0: as long as the cache allows.
  std::int64_t max_length = 0;
  // A step that can be replayed: the number of units is in device memory, at most hypotheses /
  // beam, with one token for each hypothesis.
  Tensor active;   // [1]; undefined: there are exactly H hypotheses
  Tensor ids;      // [decode_capacity(tokens)]
  Tensor parents;  // [H] row of the table before; undefined: the first step of these units
  Tensor units;    // [H] the unit of each hypothesis
  Tensor sources;  // [H] in a first step: the sentence among the newest sources (see SequenceModel)
  Tensor offsets;  // [H + 1] first token of each; undefined: one each
};

// What a decoder's layers need to know of a step.
struct DecodeStep {
  Ragged rows;            // of the tokens; only its rows, capacity, count, positions and max_length
  Ragged last;            // of the hypotheses' newest tokens: as many rows as hypotheses
  Tensor last_row;        // i32 [H] indices of those among the rows
  bool one_each = false;  // each hypothesis has one token
  // Where the step's hypotheses are in the cache's table: which of the two alternating buffers, and
  // the row of the first hypothesis.
  int buffer = 0;
  std::int64_t table_row = 0;
  Tensor row_slot;     // i32 [R] slots of the new keys and values
  VisibleKeys past;    // the tokens of each row's hypothesis up to the row itself
  VisibleKeys memory;  // the memory of its unit's source
};

// Keys and values of many tokens, one row of `width` each. Rows are a cache line longer: at a power
// of two apart, the same head of every token would compete for the same few lines of the cache.
Tensor key_value_rows(ContextBase& context, DType dtype, std::int64_t rows, std::int64_t width);

// Rows of a decode step: finer than a training batch's, since a row costs as much as a step here.
std::int64_t decode_capacity(std::int64_t rows);

// The hard bounds of a generation.
struct CacheLimits {
  std::int64_t units = 1;
  std::int64_t beam = 1;       // hypotheses of a unit
  std::int64_t positions = 0;  // tokens of a hypothesis that the decoder reads
  std::int64_t slots = 0;      // tokens in the cache; 0: as many as all units can need. Rounded up
  std::int64_t memory_rows = 0;    // of all sources
  std::int64_t source_length = 0;  // of one source

  std::int64_t rows() const { return units * beam; }
  // Slots that a unit needs for `tokens` tokens, of which the first `prompt` are shared.
  std::int64_t slots_for(std::int64_t prompt, std::int64_t tokens) const {
    return prompt + (tokens - prompt) * beam;
  }
};

class DecoderCache {
 public:
  struct Options {
    int layers = 0;          // 0: the model keeps no keys; only rows are counted
    std::int64_t width = 0;  // of keys and values together
    DType dtype = DType::f32;
  };
  DecoderCache(ContextBase& context, const Options& options, const CacheLimits& limits);

  const CacheLimits& limits() const { return limits_; }
  ContextBase& context() const { return context_; }

  // For an ensemble, whose members have a cache each: units that enter, grow and leave here do so
  // in `follower` too, with the same slots and rows. Both caches must have the same limits and no
  // units yet; the follower outlives this cache's last use. Steps are not forwarded: each
  // member takes its own, and record_step() tells this cache of it.
  void add_follower(DecoderCache& follower) { followers_.push_back(&follower); }
  void record_step(const StepTokens& tokens);

  // Units enter and leave.
  struct Unit {
    std::int64_t prompt = 1;      // tokens of its first step
    std::int64_t max_length = 1;  // tokens that the decoder reads, at most; not below `prompt`
    std::int64_t memory_begin = 0, memory_length = 0;
  };
  // Rows for the memory of a source. Nothing when too few adjacent rows are free.
  std::optional<std::int64_t> take_memory(std::int64_t rows) { return memory_.take(rows); }
  void release_memory(std::int64_t begin, std::int64_t rows) { memory_.release(begin, rows); }
  // The units whose memory starts at `begin` see only its first `rows` rows, after publish().
  void set_memory_length(std::int64_t begin, std::int64_t rows);
  // False, and nothing changes, when too few slots are free.
  bool admit(std::int64_t unit, const Unit& needs);
  void release(std::int64_t unit);
  std::int64_t free_slots() const { return blocks_.free_slots(); }
  // Slots that admit() reserves for a unit.
  std::int64_t reserved_slots(const Unit& needs) const {
    return SlotBlocks::blocks_for(limits_.slots_for(needs.prompt, needs.max_length)) *
           SlotBlocks::kSlots;
  }
  std::int64_t free_memory_rows() const { return memory_.free_rows(); }

  // Makes sure that an admitted unit has slots for its first `tokens` tokens. They are in device
  // memory after publish(), which also tells the device about admitted units.
  void provide_slots(std::int64_t unit, std::int64_t tokens);
  void publish();
  // Whether memory that captured steps use has moved since the last call.
  bool take_moved();

  // The slots and positions of a step's tokens.
  DecodeStep extend(const StepTokens& tokens);
  // The same with the tokens' embeddings, [capacity, C].
  struct Embedded {
    DecodeStep step;
    Variable rows;
  };
  Embedded extend(const StepTokens& tokens, const Embedding& embedding, const Position& position);
  // Units' first steps between two other steps get consecutive rows of the table from this one on:
  // their hypotheses have these rows as parents.
  std::int64_t next_first_row() const { return first_row() + entered_; }
  // First steps that the table has rows for until the next other step.
  std::int64_t free_first_rows() const { return limits_.units - entered_; }
  // Forgets that buffers were swapped an odd number of times. No unit may be active.
  void reset_buffers();
  // Records that captured steps were replayed, or undoes that they were captured.
  void skip_steps(std::int64_t steps);
  // Rows of the table, for models whose own state has a row for each of the table's.
  std::int64_t table_rows() const;
  // [slots, at least width] of layer i; valid until the next publish().
  const Tensor& layer(std::size_t i) const { return layers_[i]; }

 private:
  // The rows of one step, in one buffer.
  struct RowNumbers;
  // All of a step but the kernel that fills it.
  struct Planned;
  Planned plan(const StepTokens& tokens);
  void check(const StepTokens& tokens) const;
  void grow_layers(std::int64_t slots);
  void swap_buffers();
  std::int64_t first_row() const { return decode_capacity(limits_.rows()); }

  ContextBase& context_;
  std::vector<DecoderCache*> followers_;
  std::int64_t width_;
  DType dtype_;
  CacheLimits limits_;
  SlotBlocks blocks_;
  RowRanges memory_;
  std::vector<std::int32_t> unit_slots_;               // kernels::UnitSlots of each unit
  Tensor device_blocks_, device_unit_slots_;           // the same and blocks_.table() on the device
  bool blocks_changed_ = true, units_changed_ = true;  // since the last publish()
  std::vector<Tensor> layers_;                         // key_value_rows of all slots
  // Of the newest step and of the one before, alternating.
  struct Table {
    Tensor slots;    // i32 [table_rows(), positions]
    Tensor lengths;  // i32 [table_rows()]
  };
  Table current_, previous_;
  std::int64_t entered_ = 0;  // rows of first steps in current_
  bool swapped_ = false;      // an odd number of times
  bool moved_ = false;        // a layer did since the last take_moved()
};

}  // namespace nunchi::nn
