// Every family with int8 weights: close to f32, the same in any batch, the same after saving.
#include "nunchi/kernels/int8_product.h"
#include "nunchi/models/format/folder.h"
#include "nunchi/models/format/safetensors.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/models/every_model.h"

namespace nunchi::testing {
namespace {

const nn::Parameters::Memory kAllInt8{.int8 = [](const nn::ParameterEntry&) { return true; }};

double relative_error(const std::vector<float>& found, const std::vector<float>& expected) {
  double errors = 0, squares = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = double{found[i]} - expected[i];
    errors += error * error;
    squares += double{expected[i]} * expected[i];
  }
  return std::sqrt(errors / squares);
}

class Int8Of : public ::testing::TestWithParam<std::string_view> {};
FOR_EVERY_FAMILY(Int8Of);

TEST_P(Int8Of, ScoresAreCloseToThoseOfF32) {
  for (const NamedModel& named : models_of(GetParam())) {
    SCOPED_TRACE(named.name);
    CpuContext context({.threads = 2});
    context.arena().poison();
    const TemporaryFolder folder;
    const AnyModel plain(context, named);
    save_model(plain.model(), folder.path());
    const Sentences sentences = pairs_of({9, 1, 30}, {12, 2, 25}, 37);
    const std::vector<float> expected = to_host<float>(plain.scores(sentences));
    CpuContext int8({.threads = 2, .precision = Precision::int8});
    int8.arena().poison();
    const AnyModel quantized(int8, load_model(folder.path(), int8), AnyModel::Loaded{});
    const std::vector<float> found = to_host<float>(quantized.scores(sentences));
    EXPECT_LT(relative_error(found, expected), 0.05);
    EXPECT_GT(relative_error(found, expected), 0);
  }
}

TEST_P(Int8Of, ASentenceGetsTheSameScoresInAnyBatch) {
  for (const int threads : {1, 3}) {
    CpuContext context({.threads = threads});
    for (const NamedModel& named : models_of(GetParam())) {
      SCOPED_TRACE(named.name);
      const AnyModel model(context, named, {}, kAllInt8);
      const Sentences all = pairs_of({5, 40, 1, 17}, {8, 33, 2, 20}, 37);
      std::vector<float> alone;
      for (std::size_t b = 0; b < all.size(); ++b) {
        const std::vector<float> scores = to_host<float>(model.scores(subset_of(all, {b})));
        alone.insert(alone.end(), scores.begin(), scores.end());
      }
      EXPECT_TRUE(same_bits(to_host<float>(model.scores(all)), alone));
    }
  }
}

TEST_P(Int8Of, SavedWeightsAreAQuarterAndGiveTheSameScores) {
  const NamedModel named = models_of(GetParam()).front();
  CpuContext context({.threads = 2});
  const TemporaryFolder plain_folder, folder;
  save_model(AnyModel(context, named).model(), plain_folder.path());
  const AnyModel model(context, named, {}, kAllInt8);
  save_model(model.model(), folder.path());
  EXPECT_LT(std::filesystem::file_size(folder / "model.safetensors"),
            std::filesystem::file_size(plain_folder / "model.safetensors") * 2 / 5);
  const AnyModel loaded(context, load_model(folder.path(), context), AnyModel::Loaded{});
  const Sentences sentences = pairs_of({5, 9}, {7, 4}, 37);
  EXPECT_TRUE(
      same_bits(to_host<float>(loaded.scores(sentences)), to_host<float>(model.scores(sentences))));
  for (const nn::ParameterEntry& entry : loaded.parameters().entries()) {
    EXPECT_EQ(entry.int8, entry.use == nn::ParameterUse::product) << entry.name;
  }
}

class Int8Folder : public ::testing::Test {
 protected:
  Int8Folder() {
    auto model = TransformerConfig(small_config());
    const auto made = ModelConfig(model)->make();
    made->parameters().allocate(context_, kAllInt8);
    made->parameters().initialize(3);
    save_model(*made, path_);
    const SafetensorsFile file = SafetensorsFile::open(weights_);
    for (const StoredTensor& tensor : file.tensors()) {
      std::vector<std::byte>& bytes = values_.emplace_back(tensor.bytes);
      file.read(tensor, bytes);
      entries_.push_back({tensor.name, tensor.dtype, tensor.shape, bytes});
    }
  }
  SafetensorsEntry& entry(const std::string& name) {
    for (SafetensorsEntry& found : entries_) {
      if (found.name == name) return found;
    }
    throw Error("no tensor " + name);
  }
  // The message for the changed file.
  std::string refusal() {
    write_safetensors(weights_, entries_);
    CpuContext context;
    return error_of([&] { load_model(path_, context); });
  }

  static constexpr const char* kWeight = "encoder.layers.0.feed_forward.up.weight";
  CpuContext context_;
  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "model";
  const std::filesystem::path weights_ = path_ / "model.safetensors";
  std::vector<std::vector<std::byte>> values_;
  std::vector<SafetensorsEntry> entries_;
};

TEST_F(Int8Folder, HostileScalesAreRefused) {
  for (const float bad :
       {-1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    SafetensorsEntry& scales = entry(std::string(kWeight) + ".scale");
    std::vector<float> numbers(scales.bytes.size() / sizeof(float), 0.5f);
    numbers[3] = bad;
    scales.bytes = std::as_bytes(std::span(numbers));
    EXPECT_NE(refusal().find("negative or not finite"), std::string::npos) << refusal();
  }
}

TEST_F(Int8Folder, MissingScalesOrOtherShapesAreRefused) {
  const std::vector<SafetensorsEntry> whole = entries_;
  entry(std::string(kWeight) + ".scale").name = "other.scale";
  EXPECT_NE(refusal().find("'encoder.layers.0.feed_forward.up.weight.scale' is missing"),
            std::string::npos);
  entries_ = whole;
  SafetensorsEntry& weight = entry(kWeight);
  std::swap(weight.shape[0], weight.shape[1]);
  EXPECT_NE(refusal().find("int8 layout"), std::string::npos);
  entries_ = whole;
  SafetensorsEntry& norm = entry("encoder.layers.0.feed_forward.norm.weight");
  norm.dtype = DType::u8;
  norm.shape = {160};
  EXPECT_NE(refusal().find("only the weights of matrix products"), std::string::npos);
}

TEST_F(Int8Folder, TrainingReadsTheWeightsAsF32) {
  CpuContext context;
  const std::unique_ptr<Model> model = load_model(path_, context, {.gradients = true});
  const nn::ParameterEntry& entry = *model->parameters().find(kWeight);
  EXPECT_FALSE(entry.int8);
  const auto made = ModelConfig(small_config())->make();
  made->parameters().allocate(context, {});
  made->parameters().initialize(3);
  EXPECT_LT(
      relative_error(to_host<float>(model->parameters().weight(entry)),
                     to_host<float>(made->parameters().weight(*made->parameters().find(kWeight)))),
      0.01);
}

}  // namespace
}  // namespace nunchi::testing
