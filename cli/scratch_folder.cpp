#include "cli/scratch_folder.h"

#include <cstdlib>

#include "nunchi/base/error.h"

namespace nunchi::cli {

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "nunchi-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw Error("cannot create a temporary folder like " + name + ".");
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace nunchi::cli
