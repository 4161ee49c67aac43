#include "nunchi/training/run/average.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "nunchi/base/error.h"
#include "nunchi/base/printable.h"
#include "nunchi/base/random_access_file.h"
#include "nunchi/models/format/folder.h"
#include "nunchi/models/format/tokenizers.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/training/run/derived_folder.h"
#include "nunchi/training/start_from.h"

namespace nunchi {
namespace {

namespace fs = std::filesystem;

template <class T>
void add_values(const std::vector<T>& values, std::vector<double>& sum) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] += static_cast<double>(
        static_cast<std::conditional_t<std::is_same_v<T, BFloat16>, float, T>>(values[i]));
  }
}

void add(const SafetensorsFile& file, const StoredTensor& tensor, std::vector<double>& sum) {
  if (tensor.dtype == DType::f64) return add_values(file.values<double>(tensor), sum);
  if (tensor.dtype == DType::bf16) return add_values(file.values<BFloat16>(tensor), sum);
  add_values(file.values<float>(tensor), sum);
}

bool same_content(const fs::path& a, const fs::path& b) {
  return read_small_file(a) == read_small_file(b);
}

// Throws Error when the two models cannot be averaged. The tensors of each must match its config.
void check_same_model(const fs::path& first, const fs::path& other, const ModelConfig& first_config,
                      const ModelConfig& other_config) {
  const std::string prefix =
      "'" + other.string() + "' cannot be averaged with '" + first.string() + "'";
  const std::string owner = "the other's";
  check_same_function(prefix, other_config, first_config, owner);
  check_same_labels(prefix, other_config, first_config, owner);
  for (const fs::path& name : companion_files(first)) {
    if (!is_tokenizer_name(name)) continue;
    if (!fs::exists(other / name) || !same_content(first / name, other / name)) {
      throw Error(prefix + ": its tokenizer " + name.string() + " is missing or differs.");
    }
  }
}

}  // namespace

ModelMean::ModelMean(std::vector<fs::path> folders, const std::string& weights_file)
    : folders_(std::move(folders)) {
  if (folders_.empty()) throw Error("an average needs at least one model.");
  std::vector<std::unique_ptr<Model>> models;
  std::vector<SafetensorsFile> files;
  for (const fs::path& folder : folders_) {
    // Checks that the folder has the tensors that its config asks for.
    models.push_back(std::move(describe_model(folder).model));
    files.push_back(SafetensorsFile::open(folder / weights_file));
    check_same_model(folders_.front(), folder, models.front()->config(), models.back()->config());
  }
  for (const StoredTensor& tensor : files.front().tensors()) {
    std::vector<double> sum(tensor.elements(), 0);
    for (std::size_t i = 0; i < files.size(); ++i) {
      const StoredTensor* part = files[i].find(tensor.name);
      if (part == nullptr || part->shape != tensor.shape) {
        throw Error((folders_[i] / weights_file).string() + ": the tensor '" +
                    printable(tensor.name) + "' is missing or has another shape.");
      }
      if (part->dtype == DType::u8) {
        throw Error("'" + folders_[i].string() +
                    "' has int8 weights; average the checkpoints first, then quantise the mean.");
      }
      add(files[i], *part, sum);
    }
    std::vector<float>& mean = means_.emplace_back(sum.size());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      mean[i] = static_cast<float>(sum[i] / static_cast<double>(files.size()));
    }
    entries_.push_back({tensor.name, DType::f32, tensor.shape, std::as_bytes(std::span(mean))});
  }
  for (const SafetensorsFile& file : files) file.check_unchanged();
}

void ModelMean::copy_to(nn::Parameters& parameters) const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const nn::ParameterEntry* entry = parameters.find(entries_[i].name);
    if (entry == nullptr) throw Error("the model has no parameter '" + entries_[i].name + "'.");
    copy_from_host<float>(means_[i], parameters.weight(*entry));
  }
  parameters.changed();
}

void ModelMean::save(const fs::path& out) const {
  write_derived_folder(folders_.front(), out, [&](const fs::path& into) {
    write_safetensors(into / "model.safetensors", entries_, {{"format", "nunchi"}});
  });
}

}  // namespace nunchi
