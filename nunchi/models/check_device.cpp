#include "nunchi/models/check_device.h"

#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"
#include "nunchi/kernels/limits.h"
#include "nunchi/models/sequence_model.h"

namespace nunchi {
namespace {

// The size of the vocabulary that the model predicts tokens from; 0 if it predicts none.
std::int64_t output_vocabulary(const Model& model) {
  if (const auto* sequence = dynamic_cast<const SequenceModel*>(&model)) {
    return sequence->target_vocabulary();
  }
  if (const auto* masked = dynamic_cast<const MaskedLanguageModel*>(&model)) {
    return masked->vocabulary();
  }
  return 0;
}

}  // namespace

void check_device(const ModelConfig& config, Device device, const std::string& where) {
  const kernels::Limits limits = kernels::limits_of(device);
  const FamilyConfig::KernelRequirements required = config->kernel_requirements();
  if (required.head_width > limits.head_width) {
    throw Error(where + ": attention heads are " + grouped(required.head_width) +
                " columns wide, but a GPU supports at most " + grouped(limits.head_width) +
                ". Use more heads, or --device cpu.");
  }
  if (required.relative_buckets > limits.relative_buckets) {
    throw Error(
        where + ": the table of relative positions has " + grouped(required.relative_buckets) +
        " entries per head, but a GPU supports at most " + grouped(limits.relative_buckets) +
        ". Lower relative_buckets or relative_max_distance, or use --device cpu.");
  }
}

void check_device(const Model& model, Device device, const std::string& where) {
  check_device(model.config(), device, where);
  const std::int64_t limit = kernels::limits_of(device).vocabulary,
                     tokens = output_vocabulary(model);
  if (tokens > limit) {
    throw Error(where + ": the vocabulary has " + grouped(tokens) +
                " tokens, but a GPU supports at most " + grouped(limit) +
                ". Use a smaller one, or --device cpu.");
  }
}

}  // namespace nunchi
