// What happened inside a model while it read and wrote one text: the one description from which
// nunchi/views makes every format. An Inspector (inference/inspector.h) fills it from a run of the
// model; it refers to nothing else and may outlive the model.
//
// Every matrix is [rows][columns] in row order. Rows and columns of attention are pieces:
//   encoder, self_attention                     source × source; without a source, input × input
//   decoder, self_attention                     input × input, a query sees the keys up to itself
//   decoder, cross_attention, state_attention   target × source
// Row i of a decoder reads input piece i and predicts target piece i.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nunchi/text/tokens.h"

namespace nunchi {

struct ValueMatrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> values;  // [rows, columns]; a masked score is -inf

  float at(std::int64_t row, std::int64_t column) const {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
  std::span<const float> row(std::int64_t i) const {
    return std::span(values).subspan(static_cast<std::size_t>(i * columns),
                                     static_cast<std::size_t>(columns));
  }
};

// Where in the model a value was computed; the names are those of a TapLocation (trace/trace.h).
struct InspectedPlace {
  std::string stack;  // "encoder" or "decoder"
  int layer = -1;     // from 0; -1: the stack itself
  // "self_attention", "cross_attention", "state_attention" (recurrent), "feed_forward" or ""
  std::string part;
  int head = -1;  // from 0; -1: all heads side by side, or no head

  bool operator==(const InspectedPlace&) const = default;
};

// What a head does, by measurement: the mean share of its weights that goes to the previous, the
// next or the first token or to the same word, and how evenly they are spread. `name` is the
// largest measure, or "mixed" if none is large.
struct HeadKind {
  std::string name;
  double measure = 0;
  std::vector<std::pair<std::string, double>> all;
};

// The softmax weights of one head; each row sums to 1.
struct InspectedHead {
  InspectedPlace place;
  HeadKind kind;
  ValueMatrix weights;
};

// Weights of another meaning: attention rollout (of a stack: layer and head are -1) or
// gradient × weight.
struct InspectedWeights {
  InspectedPlace place;
  ValueMatrix weights;
};

// The values of one tap; see trace/trace.h for the names.
struct InspectedTensor {
  std::string tap;
  InspectedPlace place;
  ValueMatrix values;
};

// Each word's vector before and after one normalisation, and the length of what the sub-layer added
// beside that of the stream after the addition. All are [rows].
struct InspectedNorm {
  InspectedPlace place;
  std::vector<float> mean_before, deviation_before, mean_after, deviation_after;
  std::vector<float> branch_length, stream_length;
};

struct TokenProbability {
  std::string piece;
  std::int32_t id = 0;
  double probability = 0;
  double logit = 0;
};

// One prediction: the token of the text at this place, and the likeliest ones, best first.
struct InspectedStep {
  std::int64_t position = 0;  // row of the decoder; in a text with masks, the place of the mask
  TokenProbability chosen;
  std::vector<TokenProbability> best;
};

// A candidate of a beam search.
struct BeamNode {
  enum class State : std::uint8_t { kept, dropped, finished };
  int id = 0;       // from 1, in the order of the steps
  int parent = -1;  // the id of the hypothesis that it continues; -1: the start
  std::string piece;
  std::int32_t token = 0;
  double score = 0;            // log-probability of the hypothesis
  double log_probability = 0;  // of this token
  State state = State::kept;
  std::string why;  // of a dropped candidate
};

struct BeamTree {
  int size = 0;
  std::vector<std::vector<BeamNode>> steps;  // of each step the candidates, best first
  std::vector<int> best;                     // the ids on the path of the best hypothesis
};

struct InspectedPositions {
  std::string kind;                 // "sinusoidal", "learned", …
  ValueMatrix rows;                 // added to embeddings, [positions, C]; empty: none
  ValueMatrix similarity;           // the cosine of two rows, [positions, positions]
  std::vector<ValueMatrix> biases;  // added to scores, one for each head, [positions, positions]
};

// The heads whose weights point best from the target to the source.
struct InspectedAlignment {
  int layer = 0;
  std::vector<int> heads;
  ValueMatrix weights;  // the mean of these heads
};

// One side: the pieces of a text, their ids, and the pieces [begin, end) of each word.
struct InspectedText {
  std::vector<std::string> pieces;
  Tokens ids;
  std::vector<std::pair<int, int>> words;
  std::vector<std::string> word_texts;
};

struct InspectedModel {
  std::string name;  // of its folder
  std::string family;
  std::int64_t parameters = 0;
  std::int64_t width = 0, heads = 0, head_width = 0;
  std::int64_t encoder_layers = 0, decoder_layers = 0;
  std::string position;  // empty: the model has none
  std::string norm;      // "pre" or "post"; empty: the model has none
  std::int64_t vocabulary = 0;
};

struct Inspection {
  enum class Task : std::uint8_t { translate, continue_text, fill };

  InspectedModel model;
  Task task = Task::translate;
  std::string source_text, target_text;
  // source: what the encoder of an encoder-decoder reads. input: what the decoder reads, or the
  // text of a model without a decoder. target: what the decoder predicts, with its end token.
  InspectedText source, target, input;
  bool given_target = false;  // the target was given; otherwise the model wrote it
  bool source_cut = false, target_cut = false;  // only the beginning of the text was used

  std::vector<InspectedStep> steps;
  std::vector<InspectedHead> attention;
  std::vector<InspectedTensor> tensors;
  std::vector<InspectedNorm> norms;
  std::vector<InspectedWeights> rollout;
  std::vector<InspectedWeights> gradient_weight;
  std::optional<InspectedPositions> positions;
  std::optional<InspectedAlignment> alignment;
  std::optional<BeamTree> beam;

  // Null if there is no such tap or head.
  const ValueMatrix* tensor(std::string_view tap, const InspectedPlace& place) const;
  const InspectedHead* head(const InspectedPlace& place) const;
};

// The texts of the rows and columns of an attention matrix.
struct AttentionAxes {
  const InspectedText& queries;
  const InspectedText& keys;
};
AttentionAxes axes_of(const Inspection& inspection, const InspectedPlace& place);

// The columns [begin, begin + count) of a matrix.
ValueMatrix columns_of(const ValueMatrix& matrix, std::int64_t begin, std::int64_t count);
// The mean of matrices of one size.
ValueMatrix mean_of(std::span<const ValueMatrix* const> matrices);
// The weights of the pieces of a key word are added and the rows of a query word are averaged, so
// rows still sum to 1.
ValueMatrix joined_into_words(const ValueMatrix& weights,
                              std::span<const std::pair<int, int>> query_words,
                              std::span<const std::pair<int, int>> key_words);

}  // namespace nunchi
