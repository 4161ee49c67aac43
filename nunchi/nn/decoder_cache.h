// What a decoder remembers while it generates: the keys and values of every token so far.
//
// Each token has a slot, a row of the cache [slots, 2 kv_heads · D] of every layer. A table says
// which slots a hypothesis consists of, so that hypotheses share what they have in common, and
// reordering a beam copies numbers only.
#pragma once

#include <vector>

#include "nunchi/nn/embedding.h"
#include "nunchi/ops/decode/decode_attention.h"
#include "nunchi/tensor/ragged.h"

namespace nunchi::nn {

// The tokens that a step feeds to the decoder: one for each hypothesis, or several, one hypothesis
// after another. All tensors are i32.
struct StepTokens {
  std::int64_t hypotheses = 0;  // H
  std::int64_t tokens = 0;      // of all hypotheses
  std::int64_t most = 1;        // of one hypothesis
  // No hypothesis has more by now, with those of earlier steps; 0: as many as `most` of each step
  // add up to, which is too much where the one that had the most in the first step is gone.
  std::int64_t longest = 0;
  // Hypotheses that this or a later step may have: room for them is made at once. 0: as many as
  // now.
  std::int64_t room = 0;
  // A step that can be replayed: how many units of `width` hypotheses there are stands in device
  // memory, at most as many as `hypotheses` says, with one token each. See DecoderCache::reserve.
  Tensor active;  // [1]; undefined: there are as many hypotheses as said
  std::int64_t width = 1;
  Tensor ids;        // [decode_capacity(tokens)]
  Tensor parents;    // [H] hypothesis of the step before; undefined: the first step
  Tensor sentences;  // [H] source sentence
  Tensor offsets;    // [H + 1] first token of each; undefined: one each
};

// What a decoder's layers need to know of a step.
struct DecodeStep {
  Ragged rows;            // of the tokens; only its rows, capacity, count, positions and max_length
  Ragged last;            // of the hypotheses' newest tokens: as many rows as hypotheses
  Tensor last_row;        // i32 [H] where they stand among the rows
  bool one_each = false;  // each hypothesis has one token
  Tensor row_slot;        // i32 [R] where new keys and values go
  KeyPlaces past;         // each row's own hypothesis, itself included
  KeyPlaces memory;       // its sentence's encoding
};

// Keys and values of many tokens, one row of `width` each. Rows are a cache line longer: at a power
// of two apart, the same head of every token would compete for the same few lines of the cache.
Tensor key_value_rows(ContextBase& context, DType dtype, std::int64_t rows, std::int64_t width);

// Rows of a decode step: finer than a training batch's, since a row costs as much as a step here.
std::int64_t decode_capacity(std::int64_t rows);

class DecoderCache {
 public:
  struct Options {
    int layers = 0;
    std::int64_t width = 0;  // of keys and values together
    DType dtype = DType::f32;
    const Ragged* memory = nullptr;  // of the source sentences; null: the model has none
  };
  DecoderCache(ContextBase& context, const Options& options);

  // Makes room for the tokens and gives them slots.
  DecodeStep extend(const StepTokens& tokens);
  // The same with the tokens' embeddings, [capacity, C].
  struct Embedded {
    DecodeStep step;
    Variable rows;
  };
  Embedded extend(const StepTokens& tokens, const Embedding& embedding, const Position& position);
  // Makes room for so many more steps that can be replayed, each with one token of at most so many
  // hypotheses: two of them leave all memory where it was. Returns whether any memory moved since
  // the last call, so that what was noted before cannot be replayed any more.
  bool reserve(std::int64_t steps, std::int64_t hypotheses);
  // Forgets all tokens and starts over with another memory, in the same places. The memory has no
  // more sentences and none longer than the first one's; where there is none, it does not matter.
  void restart(const Ragged& memory);
  bool fits(const Ragged& memory) const;
  // [slots, at least width] of layer i; valid until the next extend().
  const Tensor& layer(std::size_t i) const { return layers_[i]; }

 private:
  // All of a step but the kernel that fills it.
  struct Planned;
  Planned plan(const StepTokens& tokens);
  bool reserve_slots(std::int64_t slots);                           // whether memory moved
  bool make_room(std::int64_t hypotheses, std::int64_t positions);  // in now_; whether it moved
  void turn();

  ContextBase& context_;
  Tensor memory_begin_, memory_length_;  // i32 [sentences]
  std::int64_t memory_longest_ = 0;
  std::int64_t width_;
  DType dtype_;
  std::vector<Tensor> layers_;  // key_value_rows of all slots
  std::int64_t slots_ = 0;      // taken
  std::int64_t positions_ = 0;  // of the longest hypothesis
  // Of the newest step and of the one before, in turn.
  struct Table {
    Tensor slots;    // i32 [hypotheses, positions]
    Tensor lengths;  // i32 [hypotheses]
    Tensor taken;    // i32 [1] slots that are taken
  };
  Table now_, before_;
  bool turned_ = false;  // they have changed places an odd number of times
  bool moved_ = false;   // something did since the last reserve()
};

}  // namespace nunchi::nn
