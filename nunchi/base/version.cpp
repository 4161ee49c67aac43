#include "nunchi/base/version.h"

namespace nunchi {

std::string_view version() { return NUNCHI_VERSION; }

}  // namespace nunchi
