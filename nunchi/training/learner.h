// A training step in three parts: accumulate the gradients of the micro-batches, reduce them over
// the workers, apply them to the weights.
#pragma once

#include <cstdint>
#include <functional>
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
  std::function<void(const std::string&)> note = {};  // receives messages for the user
};

// The sums of a step, except the gradients, which are in the model's flat buffer. They cover this
// worker's micro-batches after accumulate() and those of all workers after reduce().
struct StepSums {
  Tensor losses;  // f64 [micro-batches of the step], each summed over its target tokens
  std::int64_t target_tokens = 0;
  std::int64_t tokens_processed = 0;  // tokens that the model reads
};

// The report of one training step.
struct StepReport {
  double loss = 0;  // summed over the target tokens
  std::int64_t target_tokens = 0;
  std::int64_t tokens_processed = 0;  // tokens that the model reads
  double gradient_norm = 0;           // of the mean gradient, before clipping
  // False: the step was skipped; weights and moments are unchanged.
  bool finite = true;
};

// Model, objective and communicator must outlive the learner.
class Learner {
 public:
  Learner(Model& model, const Objective& objective, const LearnerOptions& options,
          Communicator& communicator);

  // Calls accumulate, reduce and apply. `batches` are the micro-batches of the whole step, the same
  // on all workers. Throws Error when they cannot be divided equally among the workers.
  StepReport step(std::span<const HostBatch> batches, const RandomKey& key, double learning_rate);

  // Adds the gradients of this worker's micro-batches to the flat buffer, which must be zero before
  // the call. Random draws depend on `key` and on a sentence's index in the whole step, not on the
  // worker.
  //
  // If a micro-batch does not fit into memory, the gradients are cleared and summed again: from now
  // on micro-batches of more than max_rows() rows are computed in parts. The sums are the same
  // except for rounding, because they are grouped differently. Throws Error if a single sentence
  // does not fit.
  StepSums accumulate(std::span<const HostBatch> batches, const RandomKey& key);
  // Sums gradients, losses and counts over the workers.
  void reduce(StepSums& sums);
  // Divides the gradients by the number of target tokens of the step, clips them, updates the
  // weights and clears the gradients.
  StepReport apply(const StepSums& sums, double learning_rate);

  // Repeats the micro-batches of all workers with the same key and describes the first operation
  // whose result is not finite. Changes neither weights nor moments; clears the gradients. Not
  // collective.
  std::string describe_first_non_finite(std::span<const HostBatch> batches, const RandomKey& key);

  // Whether the micro-batch fits into memory: computes its gradients and clears them.
  bool fits(const HostBatch& batch);

  // The largest number of rows (see batch_rows) that is computed at once; 0: no limit.
  std::int64_t max_rows() const { return max_rows_; }
  void set_max_rows(std::int64_t rows) { max_rows_ = rows; }

  AdamOptimizer& optimizer() { return optimizer_; }
  const AdamOptimizer& optimizer() const { return optimizer_; }

 private:
  struct StepBatches;
  struct TooLarge;
  StepSums try_to_accumulate(const StepBatches& step);
  void add_part(const HostBatch& part, std::int32_t first_sentence, const Tensor& loss,
                StepSums& sums);
  // Lowers max_rows().
  void compute_in_parts(const TooLarge& failed);
  void add_gradients(const StepBatches& step, std::size_t batch, StepSums& sums);
  void add_tree(const StepBatches& step, std::size_t first, std::size_t end, StepSums& sums);

  Model& model_;
  const Objective& objective_;
  Communicator& communicator_;
  GradientSum sum_;
  std::function<void(const std::string&)> note_;
  std::int64_t max_rows_ = 0;
  AdamOptimizer optimizer_;
};

// Throws Error unless the micro-batches of a step can be divided equally among the workers. For
// GradientSum::tree the number of workers must also be a power of two, so that the micro-batches of
// each worker are a subtree.
void check_worker_count(std::int64_t micro_batches, GradientSum sum, int workers);

}  // namespace nunchi
