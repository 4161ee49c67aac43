#include <string>

#include "nunchi/base/error.h"
#include "nunchi/kernels/product.h"

namespace nunchi::kernels {

void refuse_product(const char* label, const char* why) {
  throw Error(std::string(label) + ": " + why);
}

}  // namespace nunchi::kernels
