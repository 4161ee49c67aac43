// T5, the text-to-text Transformer: a Transformer with relative positions, RMSNorm before each
// sub-layer, without biases and without scaling of attention scores or embeddings. The defaults are
// those of t5-small.
//
// In version 1.0 one table serves embeddings and the vocabulary projection, whose input is divided
// by √C; in 1.1 the projection has its own table, and the feed-forward is gated.
#pragma once

#include "nunchi/models/described_config.h"
#include "nunchi/models/families/transformer_config.h"

namespace nunchi {

TransformerConfig t5_config();

// The family's name, defaults and presets.
const FamilyInfo<TransformerConfig>& t5_info();

}  // namespace nunchi
