#include "nunchi/kernels/product.h"

#include <string>

#include "nunchi/base/error.h"

namespace nunchi::kernels {

// Compiled for no particular instruction set, so that check_product can be inlined for any.
void refuse_product(const char* label, const char* why) {
  throw Error(std::string(label) + ": " + why);
}

}  // namespace nunchi::kernels
