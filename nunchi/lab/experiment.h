// A small model, trained on examples that are generated in memory.
//
//   Experiment copying(options, model, Task::translate);
//   copying.train({.steps = 600}, copy_of_random_words, {"copying", 0, 0.5});
//   const double right = exact_share(test, copying.generate(test));
//
// Training goes through the library's objectives and its Learner, generation through its search.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "nunchi/decoding/search_options.h"
#include "nunchi/lab/draws.h"
#include "nunchi/lab/lab.h"
#include "nunchi/models/model.h"
#include "nunchi/trace/trace.h"
#include "nunchi/training/objectives/objective.h"

namespace nunchi::lab {

// Ids of generated words start after those of the usual special tokens.
inline constexpr std::int32_t kFirstWord = 3;

enum class Task : std::uint8_t {
  translate,  // encoder-decoder: source → target
  text,       // language model: each token of the target from those before it
  fill,       // bidirectional: the labels at some positions of the text
};

struct Example {
  Tokens source;  // translate: without </s>
  Tokens
      target;  // translate: without special tokens; text: all tokens; fill: the text as it is read
  std::vector<std::int32_t> positions = {};  // fill: where `target` has a label, ascending
  Tokens labels = {};                        // fill: the label at each position
};
using ExampleMaker = std::function<Example(Draws&)>;
// `count` examples of a stream of draws of their own, which training never uses.
std::vector<Example> make_examples(const Options& options, const ExampleMaker& make,
                                   std::int64_t count);

struct TrainingPlan {
  std::int64_t steps = 500;  // scaled by the effort
  std::int64_t batch = 32;   // examples of a step
  double peak = 2e-3;        // learning rate, after a tenth of the steps; then half a cosine to 0
  std::function<void(std::int64_t step)> after_step = {};  // counted from 1
  std::function<bool()> enough = {};  // asked after each step: true ends the training
};

// The part of a lab's progress that a training takes.
struct ProgressSpan {
  std::string_view part;
  double begin = 0, end = 1;
};

class Experiment {
 public:
  // A model of this config with weights drawn from the seed. `config` must have its vocabularies.
  Experiment(const Options& options, const ModelConfig& config, Task task);
  ~Experiment();

  // Returns the mean loss of a target token in each step.
  std::vector<double> train(const TrainingPlan& plan, const ExampleMaker& make,
                            const ProgressSpan& progress);
  // The mean loss of a target token, without dropout.
  double loss(std::span<const Example> examples) const;
  // translate: the best target of each source. text: what follows the first `prefix` tokens of each
  // target.
  std::vector<Tokens> generate(std::span<const Example> examples, const SearchOptions& search = {},
                               std::size_t prefix = 0) const;
  std::vector<Hypotheses> search(std::span<const Example> examples,
                                 const SearchOptions& search = {}, std::size_t prefix = 0) const;
  // fill: the likeliest token at each position of each text.
  std::vector<Tokens> fill(std::span<const Example> examples) const;
  // Runs the model with these targets and records the taps.
  Trace trace(std::span<const Example> examples, std::vector<Tap> taps) const;
  // Adds the gradients of a batch to the parameters', which are cleared before.
  void compute_gradients(std::span<const Example> examples);

  Model& model() { return *model_; }

 private:
  Options options_;
  Task task_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Objective> objective_;
};

// Share of the examples whose target was generated exactly.
double exact_share(std::span<const Example> examples, std::span<const Tokens> found);
// Share of the target tokens that were generated at their position.
double token_share(std::span<const Example> examples, std::span<const Tokens> found);
// Share of the labels that were found.
double label_share(std::span<const Example> examples, std::span<const Tokens> found);

// The attention weights of one sentence of a trace, averaged over heads or of one head.
struct Weights {
  std::int64_t queries = 0, keys = 0;
  std::vector<double> values;  // queries × keys
  double at(std::int64_t query, std::int64_t key) const {
    return values[static_cast<std::size_t>(query * keys + key)];
  }
};
inline constexpr int kMeanOfHeads = -1;
Weights weights_of(const TapRecord& record, std::size_t sentence, int head = kMeanOfHeads);

}  // namespace nunchi::lab
