// One step of learning in three parts: accumulate the gradients of the micro-batches, reduce them
// over the workers, apply them to the weights.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "nunchi/models/model.h"
#include "nunchi/training/communicator.h"
#include "nunchi/training/gradient_sum.h"
#include "nunchi/training/objectives/objective.h"
#include "nunchi/training/optimizer.h"

namespace nunchi {

struct LearnerOptions {
  AdamOptions adam;
  GradientSum sum = GradientSum::sequential;
};

// The sums of a step beside the gradients, which are in the model's flat buffer. Of this worker's
// micro-batches after accumulate(), of all after reduce().
struct StepSums {
  Tensor losses;            // f64 [micro-batches of the step], each summed over its target tokens
  std::int64_t tokens = 0;  // target tokens
  std::int64_t read = 0;    // tokens that the model read
};

struct LearnedStep {
  double loss = 0;  // summed over the target tokens
  std::int64_t tokens = 0;
  std::int64_t read = 0;     // tokens that the model read
  double gradient_norm = 0;  // of the mean gradient, before clipping
  bool finite = true;        // if not, nothing was learned: weights and moments are unchanged
};

// Model, objective and communicator outlive it.
class Learner {
 public:
  Learner(Model& model, const Objective& objective, const LearnerOptions& options,
          Communicator& communicator);

  // accumulate, reduce, apply. `batches` are the micro-batches of the whole step, the same on all
  // workers. Throws Error when the workers cannot share them equally.
  LearnedStep step(std::span<const HostBatch> batches, const RandomKey& key, double learning_rate);

  // Adds the gradients of this worker's share of the step's micro-batches to the flat buffer, which
  // is zero before. Random draws depend on `key` and on a sentence's index in the whole step, not
  // on the worker.
  StepSums accumulate(std::span<const HostBatch> batches, const RandomKey& key);
  // Sums gradients, losses and counts over the workers.
  void reduce(StepSums& sums);
  // Divides the gradients once by the step's target tokens, clips them and updates the weights;
  // clears the gradients.
  LearnedStep apply(const StepSums& sums, double learning_rate);

  // Repeats the step's micro-batches, those of all workers, with the same key and names the
  // operation whose result was the first that is not finite. Changes neither weights nor moments;
  // clears the gradients. Not collective.
  std::string first_not_finite(std::span<const HostBatch> batches, const RandomKey& key);

  AdamOptimizer& optimizer() { return optimizer_; }
  const AdamOptimizer& optimizer() const { return optimizer_; }

 private:
  struct Share;
  void add_gradients(const Share& share, std::size_t batch, StepSums& sums);
  void add_tree(const Share& share, std::size_t first, std::size_t end, StepSums& sums);

  Model& model_;
  const Objective& objective_;
  Communicator& communicator_;
  GradientSum sum_;
  AdamOptimizer optimizer_;
};

// Throws Error unless the workers can share so many micro-batches of a step equally, and, for a
// tree, each worker's share is a subtree: the number of workers is a power of two then.
void check_shares(std::int64_t micro_batches, GradientSum sum, int workers);

}  // namespace nunchi
