#include "nunchi/kernels/product.h"

#include <string>

#include "nunchi/base/error.h"

namespace nunchi::kernels {

// In a file compiled for the baseline instruction set, so that kernels compiled for any instruction
// set can inline check_product.
void refuse_product(const char* label, const char* why) {
  throw Error(std::string(label) + ": " + why);
}

}  // namespace nunchi::kernels
