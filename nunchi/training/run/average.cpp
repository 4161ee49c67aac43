#include "nunchi/training/run/average.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "nunchi/base/atomic_file.h"
#include "nunchi/base/error.h"
#include "nunchi/base/mapped_file.h"
#include "nunchi/models/format/folder.h"
#include "nunchi/models/format/safetensors.h"
#include "nunchi/models/format/tokenizers.h"
#include "nunchi/training/run/atomic_folder.h"
#include "nunchi/training/start_from.h"

namespace nunchi {
namespace {

namespace fs = std::filesystem;

template <class T>
void add_values(const SafetensorsEntry& entry, std::vector<double>& sum) {
  std::vector<T> values(sum.size());
  if (!values.empty()) std::memcpy(values.data(), entry.bytes.data(), entry.bytes.size());
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] += static_cast<double>(
        static_cast<std::conditional_t<std::is_same_v<T, BFloat16>, float, T>>(values[i]));
  }
}

void add(const SafetensorsEntry& entry, std::vector<double>& sum) {
  if (entry.dtype == DType::f64) return add_values<double>(entry, sum);
  if (entry.dtype == DType::bf16) return add_values<BFloat16>(entry, sum);
  add_values<float>(entry, sum);
}

// The other files of a model folder.
std::vector<fs::path> companions(const fs::path& folder) {
  std::vector<fs::path> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const fs::path name = entry.path().filename();
    const bool wanted = name == "config.json" || name == "generation_config.json";
    if (wanted || is_tokenizer_name(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool same_content(const fs::path& a, const fs::path& b) {
  const MappedFile left(a), right(b);
  return std::ranges::equal(left.bytes(), right.bytes());
}

// Throws when the mean of both would not be a model. Their tensors are those of their configs.
void check_like_first(const fs::path& first, const fs::path& other, const ModelConfig& a,
                      const ModelConfig& b) {
  const std::string cannot =
      "'" + other.string() + "' cannot be averaged with '" + first.string() + "'";
  const std::string whose = "the other's";
  check_same_function(cannot, b, a, whose);
  check_same_labels(cannot, b, a, whose);
  for (const fs::path& name : companions(first)) {
    if (!is_tokenizer_name(name)) continue;
    if (!fs::exists(other / name) || !same_content(first / name, other / name)) {
      throw Error(cannot + ": it has another tokenizer, " + name.string() + ".");
    }
  }
}

}  // namespace

void average_models(std::span<const fs::path> folders, const fs::path& out) {
  if (folders.empty()) throw Error("an average needs at least one model.");
  std::vector<std::unique_ptr<Model>> models;
  std::vector<SafetensorsFile> files;
  for (const fs::path& folder : folders) {
    // Checks that the folder has the tensors that its config asks for.
    models.push_back(std::move(describe_model(folder).model));
    files.push_back(SafetensorsFile::open(folder / "model.safetensors"));
    check_like_first(folders.front(), folder, models.front()->config(), models.back()->config());
  }
  // All values live here until the file is written.
  std::vector<std::vector<float>> means;
  std::vector<SafetensorsEntry> entries;
  for (const SafetensorsEntry& entry : files.front().entries()) {
    std::vector<double> sum(entry.bytes.size() / size_of(entry.dtype), 0);
    for (const SafetensorsFile& file : files) add(*file.find(entry.name), sum);
    std::vector<float>& mean = means.emplace_back(sum.size());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      mean[i] = static_cast<float>(sum[i] / static_cast<double>(files.size()));
    }
    entries.push_back({entry.name, DType::f32, entry.shape, std::as_bytes(std::span(mean))});
  }
  std::error_code failure;
  // "runs/mean/" is "runs/mean".
  const fs::path target = out.has_filename() ? out : out.parent_path();
  const bool occupied = fs::exists(target, failure) && !fs::is_empty(target, failure);
  if (target.has_parent_path()) fs::create_directories(target.parent_path(), failure);
  // In a folder with other files, the new ones are written to a temporary folder inside and moved.
  AtomicFolder made(occupied ? target / "" : target);
  made.fill([&](const fs::path& into) {
    for (const fs::path& name : companions(folders.front())) {
      const MappedFile content(folders.front() / name);
      AtomicFile copy(into / name);
      copy.write(content.bytes());
      copy.commit();
    }
    write_safetensors(into / "model.safetensors", entries, {{"format", "nunchi"}});
  });
  if (occupied) {
    move_files(made.temporary(), target);
  } else {
    made.commit();
  }
}

}  // namespace nunchi
