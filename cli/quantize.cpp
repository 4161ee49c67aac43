#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/option_group.h"
#include "nunchi/base/error.h"
#include "nunchi/models/format/folder.h"
#include "nunchi/training/run/derived_folder.h"

namespace nunchi::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string model, out;
  std::vector<std::string> keep;
};

void run(const Arguments& arguments) {
  const fs::path folder = arguments.model, out = arguments.out;
  if (fs::exists(out / "model.safetensors")) {
    throw UsageError("'" + arguments.out + "' already contains a model. Choose another folder.");
  }
  std::vector<bool> used(arguments.keep.size(), false);
  const auto quantized = [&](const nn::ParameterEntry& entry) {
    bool kept = false;
    for (std::size_t i = 0; i < arguments.keep.size(); ++i) {
      if (entry.name.find(arguments.keep[i]) == std::string::npos) continue;
      kept = used[i] = true;
    }
    return !kept;
  };
  CpuContext context;
  const std::unique_ptr<Model> model = configured_model(folder);
  load_weights(*model, folder, context, {.int8 = quantized});
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    throw UsageError("--keep " + arguments.keep[i] +
                     ": no weight that could be int8 has this in its name; see 'nunchi info "
                     "--tensors'.");
  }
  write_derived_folder(folder, out, [&](const fs::path& into) { save_model(*model, into); });
  const auto& entries = model->parameters().entries();
  const auto mebibytes = [](const fs::path& file) {
    return static_cast<double>(fs::file_size(file)) / (1 << 20);
  };
  fmt::print(stderr, "{} of {} tensors are int8 now: {:.1f} MiB instead of {:.1f} MiB, in {}\n",
             std::ranges::count_if(entries, &nn::ParameterEntry::int8), entries.size(),
             mebibytes(out / "model.safetensors"), mebibytes(folder / "model.safetensors"),
             arguments.out);
}

}  // namespace

void add_quantize(CLI::App& program, Job& job) {
  CLI::App* quantize =
      add_command(program, "quantize", "Store the weights of a model as int8")->group(kTraining);
  auto arguments = std::make_shared<Arguments>();
  OptionGroup positional(*quantize, kArguments);
  positional.add("MODEL", arguments->model, text("MODEL", "a folder"), "Model folder to read")
      ->required();
  positional.add("OUT", arguments->out, text("OUT", "a folder"), "Model folder to write")
      ->required();
  OptionGroup weights(*quantize, "Weights");
  weights.add("--keep", arguments->keep, text("TEXT", "a part of a name; may be repeated"),
              "Leave weights with this in their names as they are");
  add_examples(*quantize, {"nunchi quantize runs/mine runs/mine-int8",
                           "nunchi quantize runs/mine runs/mine-int8 --keep embedding"});
  quantize->callback([=, &job] { job = [=] { run(*arguments); }; });
}

}  // namespace nunchi::cli
