#include "nunchi/training/run/derived_folder.h"

#include <algorithm>
#include <span>
#include <string>

#include "nunchi/base/atomic_file.h"
#include "nunchi/base/random_access_file.h"
#include "nunchi/models/format/tokenizers.h"
#include "nunchi/training/run/atomic_folder.h"

namespace nunchi {

namespace fs = std::filesystem;

std::vector<fs::path> companion_files(const fs::path& folder) {
  std::vector<fs::path> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const fs::path name = entry.path().filename();
    const bool wanted = name == "config.json" || name == "generation_config.json";
    if (wanted || is_tokenizer_name(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void write_derived_folder(const fs::path& source, const fs::path& out,
                          const std::function<void(const fs::path& folder)>& write) {
  std::error_code failure;
  // "runs/mean/" becomes "runs/mean".
  const fs::path target = out.has_filename() ? out : out.parent_path();
  const bool has_files = fs::exists(target, failure) && !fs::is_empty(target, failure);
  if (target.has_parent_path()) fs::create_directories(target.parent_path(), failure);
  // If the folder has files, the new ones are written to a temporary folder inside it and moved.
  AtomicFolder folder(has_files ? target / "" : target);
  folder.fill([&](const fs::path& into) {
    for (const fs::path& name : companion_files(source)) {
      const std::string content = read_small_file(source / name);
      AtomicFile copy(into / name);
      copy.write(std::as_bytes(std::span(content)));
      copy.commit();
    }
    write(into);
  });
  if (has_files) {
    move_files(folder.temporary(), target);
  } else {
    folder.commit();
  }
}

}  // namespace nunchi
