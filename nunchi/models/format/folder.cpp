#include "nunchi/models/format/folder.h"

#include <cstring>
#include <string>

#include "nunchi/base/atomic_file.h"
#include "nunchi/base/error.h"
#include "nunchi/base/printable.h"
#include "nunchi/base/random_access_file.h"
#include "nunchi/models/check_device.h"
#include "nunchi/models/family.h"
#include "nunchi/models/format/safetensors.h"
#include "nunchi/ops/tensors.h"

namespace nunchi {
namespace {

constexpr const char* kConfig = "config.json";
constexpr const char* kWeights = "model.safetensors";

std::string read_config(const std::filesystem::path& folder) {
  std::error_code ignored;
  std::error_code failure;
  const bool is_folder = std::filesystem::is_directory(folder, failure);
  if (failure == std::errc::permission_denied) {
    throw Error("cannot read '" + folder.string() + "': " + failure.message() + ".");
  }
  if (!is_folder) {
    throw Error("'" + folder.string() + "' is not a model folder: there is no such folder.");
  }
  const std::filesystem::path path = folder / kConfig;
  const bool has_config = std::filesystem::exists(path, failure);
  if (failure == std::errc::permission_denied) {
    throw Error("cannot read " + path.string() + ": " + failure.message() + ".");
  }
  if (!has_config) {
    // See training/run/run_folder.h.
    const std::filesystem::path checkpoints = folder / "checkpoints";
    const bool is_run = std::filesystem::is_directory(checkpoints, ignored) &&
                        !std::filesystem::is_empty(checkpoints, ignored);
    throw Error("'" + folder.string() + "' is not a model folder: it has no config.json." +
                (is_run ? " Its training run has not finished; each folder in " +
                              checkpoints.string() + " is a model."
                        : ""));
  }
  constexpr std::size_t kMaxConfigBytes = 1 << 20;
  return read_small_file(path, kMaxConfigBytes);
}

// Throws Error unless the file has a tensor of the right shape for each parameter, and no others.
void check_tensors(const nn::Parameters& parameters, const SafetensorsFile& file,
                   const std::string& where) {
  for (const nn::ParameterEntry& entry : parameters.entries()) {
    const StoredTensor* found = file.find(entry.name);
    if (found == nullptr) throw Error(where + ": the tensor '" + entry.name + "' is missing.");
    const bool floating =
        found->dtype == DType::f32 || found->dtype == DType::f64 || found->dtype == DType::bf16;
    if (!floating) {
      throw Error(where + ": the tensor '" + entry.name + "' has " + name_of(found->dtype) +
                  " numbers; it must have f32, f64 or bf16.");
    }
    bool same = static_cast<int>(found->shape.size()) == entry.shape.dimensions();
    std::string shape;
    for (std::size_t i = 0; i < found->shape.size(); ++i) {
      same = same && found->shape[i] == entry.shape[static_cast<int>(i)];
      shape += (i ? ", " : "") + std::to_string(found->shape[i]);
    }
    if (!same) {
      throw Error(where + ": the tensor '" + entry.name + "' has the shape [" + shape +
                  "], but config.json asks for " + entry.shape.to_string() + ".");
    }
  }
  for (const StoredTensor& tensor : file.tensors()) {
    if (parameters.find(tensor.name) == nullptr) {
      throw Error(where + ": the tensor '" + printable(tensor.name) +
                  "' is not part of the model that config.json describes.");
    }
  }
}

SafetensorsFile open_weights(const Model& model, const std::filesystem::path& folder) {
  SafetensorsFile weights = SafetensorsFile::open(folder / kWeights);
  check_tensors(model.parameters(), weights, (folder / kWeights).string());
  return weights;
}

Tensor read_tensor(ContextBase& context, const SafetensorsFile& file,
                   const nn::ParameterEntry& entry) {
  const StoredTensor& stored = *file.find(entry.name);
  const auto read = [&]<class T>(T) {
    return from_host(context, file.values<T>(stored), entry.shape);
  };
  if (stored.dtype == DType::f64) return read(double());
  if (stored.dtype == DType::bf16) return read(BFloat16());
  return read(float());
}

}  // namespace

void save_model(const Model& model, const std::filesystem::path& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) throw Error("cannot make the folder " + folder.string() + ": " + failure.message());
  // The entries refer to these bytes until the file is written.
  std::vector<std::vector<std::byte>> values;
  std::vector<SafetensorsEntry> entries;
  for (const nn::ParameterEntry& entry : model.parameters().entries()) {
    const Tensor tensor = model.parameters().weight(entry);
    std::vector<std::byte>& bytes = values.emplace_back(tensor.bytes());
    if (tensor.dtype() == DType::f64) {
      std::memcpy(bytes.data(), to_host<double>(tensor).data(), bytes.size());
    } else {
      std::memcpy(bytes.data(), to_host<float>(tensor).data(), bytes.size());
    }
    std::vector<std::int64_t> shape;
    shape.reserve(static_cast<std::size_t>(entry.shape.dimensions()));
    for (int i = 0; i < entry.shape.dimensions(); ++i) shape.push_back(entry.shape[i]);
    entries.push_back({entry.name, tensor.dtype(), std::move(shape), bytes});
  }
  write_safetensors(folder / kWeights, entries, {{"format", "nunchi"}});
  const std::string config = model.config_json();
  AtomicFile file(folder / kConfig);
  file.write(std::as_bytes(std::span(config)));
  file.commit();
}

std::unique_ptr<Model> load_model(const std::filesystem::path& folder, ContextBase& context,
                                  const nn::Parameters::Memory& memory) {
  std::unique_ptr<Model> model = configured_model(folder);
  load_weights(*model, folder, context, memory);
  return model;
}

void load_weights(Model& model, const std::filesystem::path& folder, ContextBase& context,
                  const nn::Parameters::Memory& memory) {
  const SafetensorsFile weights = open_weights(model, folder);
  check_device(model, context.device(), (folder / kConfig).string());
  nn::Parameters& parameters = model.parameters();
  parameters.allocate(context, memory);
  for (const nn::ParameterEntry& entry : parameters.entries()) {
    convert(read_tensor(context, weights, entry), parameters.weight(entry));
  }
  weights.check_unchanged();
  parameters.changed();
}

ModelConfig load_config(const std::filesystem::path& folder) {
  return read_model_config(read_config(folder), (folder / kConfig).string());
}

std::unique_ptr<Model> configured_model(const std::filesystem::path& folder) {
  return load_config(folder)->make();
}

ModelDescription describe_model(const std::filesystem::path& folder) {
  std::unique_ptr<Model> model = configured_model(folder);
  open_weights(*model, folder);
  return {std::move(model), std::filesystem::file_size(folder / kWeights)};
}

}  // namespace nunchi
