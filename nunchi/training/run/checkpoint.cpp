#include "nunchi/training/run/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "nunchi/base/atomic_file.h"
#include "nunchi/base/error.h"
#include "nunchi/base/json_options.h"
#include "nunchi/base/options.h"
#include "nunchi/base/printable.h"
#include "nunchi/base/random_access_file.h"
#include "nunchi/kernels/product.h"
#include "nunchi/models/format/folder.h"
#include "nunchi/models/format/safetensors.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"
#include "nunchi/training/run/atomic_folder.h"

namespace nunchi {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFirst = "first_moment.";
constexpr const char* kSecond = "second_moment.";
// The algorithms of matrix products that were chosen by measurement.
constexpr const char* kAlgorithms = "algorithms.txt";

void write_file(const fs::path& path, const std::string& content) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(content)));
  file.commit();
}

std::vector<std::int64_t> sizes_of(const Shape& shape) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(static_cast<std::size_t>(shape.dimensions()));
  for (int i = 0; i < shape.dimensions(); ++i) sizes.push_back(shape[i]);
  return sizes;
}

// The fields of trainer.json.
void visit_fields(auto& visitor, auto& state) {
  constexpr double kMax = std::numeric_limits<double>::max();
  const auto count = [&](const char* key, auto& field) {
    visitor.integer(key, field, 0, INT64_MAX);
  };
  count("step", state.step);
  count("epoch", state.epoch);
  count("batch", state.batch);
  visitor.text("order_digest", state.order_digest);
  count("seed", state.seed);
  visitor.text("config_digest", state.config_digest);
  count("last_validation", state.last_validation);
  count("validations_without_gain", state.validations_without_gain);
  visitor.maps("best", state.best, [&](auto& inner, auto& entry) {
    inner.integer("step", entry.step, 0, INT64_MAX);
    inner.number("score", entry.score, -kMax, kMax);
  });
  count("max_rows", state.max_rows);
  visitor.number("elapsed_seconds", state.elapsed_seconds, 0, kMax);
  count("skipped_steps", state.skipped_steps);
  count("skipped_in_a_row", state.skipped_in_a_row);
  visitor.number("window_loss", state.window_loss, -kMax, kMax);
  count("window_tokens", state.window_tokens);
}

TrainerState read_state(const fs::path& path) {
  return trainer_state_from_json(read_small_file(path), path.string());
}

// Adds the tensors of a flat buffer, named PREFIX + the parameter's name.
void add_entries(std::span<const float> flat, const std::string& prefix,
                 const nn::Parameters& parameters, std::vector<SafetensorsEntry>& entries) {
  for (const nn::ParameterEntry& entry : parameters.entries()) {
    const auto part = flat.subspan(static_cast<std::size_t>(entry.offset),
                                   static_cast<std::size_t>(entry.shape.elements()));
    entries.push_back(
        {prefix + entry.name, DType::f32, sizes_of(entry.shape), std::as_bytes(part)});
  }
}

void write_average(const fs::path& path, const nn::Parameters& parameters,
                   const MovingAverage& average) {
  const std::vector<float> weights = to_host<float>(average.weights());
  std::vector<SafetensorsEntry> entries;
  add_entries(weights, "", parameters, entries);
  write_safetensors(path, entries, {{"format", "nunchi"}});
}

void write_moments(const fs::path& path, const nn::Parameters& parameters,
                   const AdamOptimizer& optimizer) {
  const std::vector<float> first = to_host<float>(optimizer.first_moment());
  const std::vector<float> second = to_host<float>(optimizer.second_moment());
  std::vector<SafetensorsEntry> entries;
  add_entries(first, kFirst, parameters, entries);
  add_entries(second, kSecond, parameters, entries);
  write_safetensors(path, entries,
                    {{"format", "nunchi"}, {"steps", std::to_string(optimizer.steps())}});
}

// The tensors of one flat buffer in a file.
struct StoredBuffer {
  const SafetensorsFile& file;
  std::string prefix;  // of the tensors' names
};

void check_shapes(const StoredBuffer& stored, const nn::Parameters& parameters,
                  const fs::path& where) {
  const auto fail = [&](const std::string& difference) {
    throw Error("the checkpoint '" + where.string() + "' does not fit the model: " + difference +
                ". Use the config of the checkpoint, or start another run.");
  };
  for (const nn::ParameterEntry& entry : parameters.entries()) {
    const StoredTensor* found = stored.file.find(stored.prefix + entry.name);
    if (found == nullptr) fail("it has no tensor '" + stored.prefix + entry.name + "'");
    if (found->dtype != DType::f32) {
      fail("'" + found->name + "' has type " + name_of(found->dtype) + ", not f32");
    }
    if (found->shape != sizes_of(entry.shape)) {
      std::string shape;
      for (const std::int64_t size : found->shape) {
        shape += (shape.empty() ? "" : ", ") + std::to_string(size);
      }
      fail("'" + found->name + "' has shape [" + shape + "], but the model needs " +
           entry.shape.to_string());
    }
  }
  for (const StoredTensor& tensor : stored.file.tensors()) {
    if (tensor.name.starts_with(stored.prefix) &&
        parameters.find(tensor.name.substr(stored.prefix.size())) == nullptr) {
      fail("its tensor '" + printable(tensor.name) + "' is not part of the model");
    }
  }
}

void restore(const StoredBuffer& stored, const nn::Parameters& parameters, const Tensor& flat) {
  for (const nn::ParameterEntry& entry : parameters.entries()) {
    const StoredTensor& found = *stored.file.find(stored.prefix + entry.name);
    copy_from_host<float>(stored.file.values<float>(found),
                          flat.flat_slice(entry.offset, entry.shape));
  }
  stored.file.check_unchanged();
}

// Throws Error if there is none.
std::vector<std::int64_t> steps_of_run(const fs::path& run) {
  std::vector<std::int64_t> steps = checkpoint_steps(run / "checkpoints");
  if (steps.empty()) throw Error("'" + run.string() + "' is not a run with checkpoints.");
  return steps;
}

// Throws Error if the run has fewer checkpoints than asked for.
void check_count(const fs::path& run, const std::string& kind, std::size_t found,
                 std::size_t wanted) {
  if (found >= wanted) return;
  throw Error("'" + run.string() + "' has " + std::to_string(found) + " " + kind +
              (found == 1 ? "" : "s") + ", not " + std::to_string(wanted) + ".");
}

std::int64_t optimizer_steps(const SafetensorsFile& file, const fs::path& where) {
  const auto found = file.metadata().find("steps");
  const std::string text = found == file.metadata().end() ? "" : found->second;
  std::int64_t steps = -1;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), steps);
  if (failure != std::errc() || end != text.data() + text.size() || steps < 0) {
    throw Error(where.string() + ": the optimiser's step count is missing or invalid.");
  }
  return steps;
}

}  // namespace

std::string to_json(const TrainerState& state) {
  OptionWriter out;
  visit_fields(out, state);
  return to_json(out.tree());
}

TrainerState trainer_state_from_json(std::string_view text, const std::string& where) {
  const Options options = Options::from_json(text, where);
  OptionReader in(options);
  if (!in.has("step")) in.fail("step", "is missing; this is not the state of a trainer");
  TrainerState state;
  visit_fields(in, state);
  in.finish();
  return state;
}

void write_checkpoint(const fs::path& checkpoints, const CheckpointParts& parts) {
  AtomicFolder folder(checkpoint_path(checkpoints, parts.state.step));
  folder.fill([&](const fs::path& into) {
    save_model(parts.model, into);
    write_moments(into / "optimizer.safetensors", parts.model.parameters(), parts.optimizer);
    if (parts.average != nullptr) {
      write_average(into / kAverageFile, parts.model.parameters(), *parts.average);
    }
    if (parts.write_companions) parts.write_companions(into);
    std::string algorithms;
    on_device(parts.model.parameters().weights().context(),
              [&](auto& ctx) { algorithms = kernels::chosen_algorithms(ctx); });
    if (!algorithms.empty()) write_file(into / kAlgorithms, algorithms);
    write_file(into / "trainer.json", to_json(parts.state));
  });
  folder.commit();
}

fs::path checkpoint_path(const fs::path& checkpoints, std::int64_t step) {
  return checkpoints / ("step-" + std::to_string(step));
}

std::vector<std::int64_t> checkpoint_steps(const fs::path& checkpoints) {
  std::vector<std::int64_t> steps;
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints, failure)) {
    const std::string name = entry.path().filename().string();
    constexpr std::string_view kPrefix = "step-";
    if (!name.starts_with(kPrefix)) continue;
    std::int64_t step = -1;
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + kPrefix.size(), end, step);
    if (parsed.ec == std::errc() && parsed.ptr == end && step >= 0) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

TrainerState load_checkpoint(const fs::path& checkpoint, Model& model, AdamOptimizer& optimizer,
                             MovingAverage* average) {
  nn::Parameters& parameters = model.parameters();
  const fs::path moments_path = checkpoint / "optimizer.safetensors";
  const SafetensorsFile weights = SafetensorsFile::open(checkpoint / "model.safetensors");
  const SafetensorsFile moments = SafetensorsFile::open(moments_path);
  check_shapes({weights, ""}, parameters, checkpoint);
  check_shapes({moments, kFirst}, parameters, checkpoint);
  check_shapes({moments, kSecond}, parameters, checkpoint);
  std::optional<SafetensorsFile> averaged;
  if (average != nullptr && fs::exists(checkpoint / kAverageFile)) {
    averaged = SafetensorsFile::open(checkpoint / kAverageFile);
    check_shapes({*averaged, ""}, parameters, checkpoint);
  }
  const std::int64_t steps = optimizer_steps(moments, moments_path);
  TrainerState state = read_state(checkpoint / "trainer.json");
  if (fs::exists(checkpoint / kAlgorithms)) {
    const std::string text = read_small_file(checkpoint / kAlgorithms);
    on_device(parameters.weights().context(),
              [&](auto& ctx) { kernels::choose_algorithms(ctx, text); });
  }

  restore({weights, ""}, parameters, parameters.weights());
  restore({moments, kFirst}, parameters, optimizer.first_moment());
  restore({moments, kSecond}, parameters, optimizer.second_moment());
  if (averaged) {
    restore({*averaged, ""}, parameters, average->weights());
  } else if (average != nullptr) {
    average->reset();
  }
  optimizer.set_steps(steps);
  parameters.changed();
  return state;
}

std::vector<fs::path> last_checkpoints(const fs::path& run, std::size_t count) {
  const std::vector<std::int64_t> steps = steps_of_run(run);
  check_count(run, "checkpoint", steps.size(), count);
  std::vector<fs::path> paths;
  for (std::size_t i = 0; i < count; ++i) {
    paths.push_back(checkpoint_path(run / "checkpoints", steps[steps.size() - 1 - i]));
  }
  return paths;
}

std::vector<fs::path> best_checkpoints(const fs::path& run, std::size_t count) {
  const std::vector<std::int64_t> steps = steps_of_run(run);
  const TrainerState state =
      read_state(checkpoint_path(run / "checkpoints", steps.back()) / "trainer.json");
  std::vector<fs::path> paths;
  for (const StepScore& best : state.best) {
    // The user may have removed this checkpoint.
    if (!std::ranges::binary_search(steps, best.step)) continue;
    paths.push_back(checkpoint_path(run / "checkpoints", best.step));
  }
  check_count(run, "validated checkpoint", paths.size(), count);
  paths.resize(count);
  return paths;
}

void remove_old_checkpoints(const fs::path& checkpoints, std::size_t keep_last,
                            std::span<const StepScore> best) {
  const std::vector<std::int64_t> steps = checkpoint_steps(checkpoints);
  for (std::size_t i = 0; i + keep_last < steps.size(); ++i) {
    const bool among_best =
        std::any_of(best.begin(), best.end(), [&](auto& b) { return b.step == steps[i]; });
    if (!among_best) remove_folder(checkpoint_path(checkpoints, steps[i]));
  }
}

}  // namespace nunchi
