// How much a model drops while it is trained, whatever its family: its options whose names end in
// "dropout".
#pragma once

#include <string>
#include <vector>

#include "nunchi/models/family.h"

namespace nunchi {

struct DropoutOption {
  std::string name;  // as in `model:` of a training config
  double rate = 0;
};

std::vector<DropoutOption> dropouts_of(const ModelConfig& model);

// The same model with this rate, at least 0 and below 1, in all of them. Throws Error for another.
ModelConfig with_dropout(const ModelConfig& model, double rate);

}  // namespace nunchi
