#include "nunchi/models/format/folder.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_set>

#include "nunchi/base/atomic_file.h"
#include "nunchi/base/error.h"
#include "nunchi/base/printable.h"
#include "nunchi/base/random_access_file.h"
#include "nunchi/kernels/int8_product.h"
#include "nunchi/models/check_device.h"
#include "nunchi/models/family.h"
#include "nunchi/models/format/int8_tensors.h"
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
  std::unordered_set<std::string> scales;  // the tensors beside int8 weights
  for (const nn::ParameterEntry& entry : parameters.entries()) {
    const StoredTensor* found = file.find(entry.name);
    if (found == nullptr) throw Error(where + ": the tensor '" + entry.name + "' is missing.");
    if (found->dtype == DType::u8) {
      check_int8_tensors(file, entry, where);
      scales.insert(int8_scale_name(entry));
      continue;
    }
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
    if (parameters.find(tensor.name) == nullptr && !scales.contains(tensor.name)) {
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
                   const nn::ParameterEntry& entry, const std::string& where) {
  const StoredTensor& stored = *file.find(entry.name);
  const auto read = [&]<class T>(T) {
    return from_host(context, file.values<T>(stored), entry.shape);
  };
  if (stored.dtype == DType::u8) {
    return from_host(context, read_int8_as_f32(file, entry, where), entry.shape);
  }
  if (stored.dtype == DType::f64) return read(double());
  if (stored.dtype == DType::bf16) return read(BFloat16());
  return read(float());
}

// Reads rows of a floating-point tensor as f32.
template <class T>
void read_rows(const SafetensorsFile& file, const StoredTensor& stored, std::uint64_t first,
               std::span<float> into) {
  std::vector<T> values(into.size());
  file.read(stored, std::as_writable_bytes(std::span(values)), first * sizeof(T));
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = static_cast<float>(values[i]);
}

// Quantises a floating-point tensor while it is read, so that its f32 form is never in memory.
void quantize_tensor(nn::Parameters& parameters, const SafetensorsFile& file,
                     const nn::ParameterEntry& entry) {
  constexpr std::int64_t kElements = 1 << 20;
  const StoredTensor& stored = *file.find(entry.name);
  const std::int64_t rows = entry.shape[0], columns = entry.shape[1];
  const std::int64_t panel = kernels::kInt8PanelRows;
  const std::int64_t step =
      std::max<std::int64_t>(panel, kElements / std::max<std::int64_t>(columns, 1) / panel * panel);
  std::vector<float> values;
  for (std::int64_t first = 0; first < rows; first += step) {
    values.resize(static_cast<std::size_t>(std::min(step, rows - first) * columns));
    const auto begin = static_cast<std::uint64_t>(first * columns);
    if (stored.dtype == DType::f64) {
      read_rows<double>(file, stored, begin, values);
    } else if (stored.dtype == DType::bf16) {
      read_rows<BFloat16>(file, stored, begin, values);
    } else {
      file.read(stored, std::as_writable_bytes(std::span(values)), begin * sizeof(float));
    }
    parameters.quantize_rows(entry, first, values);
  }
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
    if (entry.int8) {
      for (SafetensorsEntry& tensor : int8_entries(entry)) entries.push_back(std::move(tensor));
      continue;
    }
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
  const std::string where = (folder / kWeights).string();
  const auto stored_as_int8 = [&](const nn::ParameterEntry& entry) {
    return weights.find(entry.name)->dtype == DType::u8;
  };
  nn::Parameters::Memory chosen = memory;
  if (!memory.dtype && !memory.int8) {
    const bool quantize = context.precision() == Precision::int8;
    chosen.int8 = [=](const nn::ParameterEntry& entry) {
      return quantize || stored_as_int8(entry);
    };
  }
  parameters.allocate(context, chosen);
  for (const nn::ParameterEntry& entry : parameters.entries()) {
    if (!entry.int8) {
      convert(read_tensor(context, weights, entry, where), parameters.weight(entry));
    } else if (stored_as_int8(entry)) {
      read_int8(weights, entry, where);
    } else {
      quantize_tensor(parameters, weights, entry);
    }
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
  const SafetensorsFile weights = open_weights(*model, folder);
  ModelDescription description{std::move(model), std::filesystem::file_size(folder / kWeights)};
  for (const StoredTensor& tensor : weights.tensors()) {
    if (tensor.dtype == DType::u8) description.int8.push_back(tensor.name);
  }
  return description;
}

}  // namespace nunchi
