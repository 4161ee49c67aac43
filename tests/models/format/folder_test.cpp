// Saved models load as they were saved, and a broken folder is refused with one clear sentence.
#include "nunchi/models/format/folder.h"

#include "nunchi/models/format/safetensors.h"
#include "tests/files.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

class ModelFolder : public ::testing::Test {
 protected:
  ModelFolder() { save_model(*make_small<Transformer>(context_, small_config()), path_); }

  void change_config(const std::string& from, const std::string& to) {
    std::string text = content(path_ / "config.json");
    const std::size_t found = text.find(from);
    ASSERT_NE(found, std::string::npos);
    write_text(path_ / "config.json", text.replace(found, from.size(), to));
  }
  void expect_refused(const std::string& reason) {
    const std::size_t before = context_.arena().in_use();
    const std::string message = error_of([&] { load_model(path_, context_); });
    EXPECT_NE(message.find(reason), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << "the message must be one line";
    EXPECT_EQ(context_.arena().in_use(), before);
    EXPECT_LT(context_.arena().peak(), std::size_t{64} << 20);
  }

  CpuContext context_;
  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "model";
};

TEST_F(ModelFolder, RoundTripKeepsEveryBit) {
  const auto written = make_small<Transformer>(context_, small_config());
  const std::unique_ptr<Model> read = load_model(path_, context_);
  EXPECT_EQ(read->family(), "transformer");
  EXPECT_EQ(read->config_json(), written->config_json());
  EXPECT_TRUE(same_bits(to_host<float>(read->parameters().weights()),
                        to_host<float>(written->parameters().weights())));
}

TEST_F(ModelFolder, EveryOptionSurvives) {
  TransformerConfig config = small_config();
  config.source_vocabulary = 41;
  config.norm_placement = nn::NormPlacement::pre;
  config.norm = NormKind::rms;
  config.activation = ActivationKind::swiglu;
  config.tied_embeddings = TiedEmbeddings::none;
  config.position = nn::PositionKind::learned;
  config.max_positions = 9;
  config.dropout = 0.3f;
  config.attention_dropout = 0.1f;
  config.activation_dropout = 0.05f;
  config.kv_heads = 1;
  config.head_width = 8;
  config.norm_epsilon = 1e-6;
  config.bias = config.scale_embeddings = config.scale_attention = false;
  config.scale_output = true;
  config.rotary_base = 500000;
  config.relative_kind = nn::RelativeKind::clipped;
  config.relative_buckets = 64;
  config.relative_max_distance = 100;
  for (const auto& [name, position] : stack_options::kPositions) {
    config.position = position;
    const std::string written = ModelConfig(config)->to_json();
    const ModelConfig model = read_model_config(written, "x");
    EXPECT_EQ(model->to_json(), written);
    const auto& read_config = model.as<TransformerConfig>();
    EXPECT_EQ(read_config.dropout, 0.3f);
    const bool learned = position == nn::PositionKind::learned,
               rotary = position == nn::PositionKind::rotary,
               relative = position == nn::PositionKind::relative;
    const TransformerConfig defaults;
    EXPECT_EQ(read_config.max_positions, learned ? 9 : defaults.max_positions) << name;
    EXPECT_EQ(read_config.rotary_base, rotary ? 500000 : defaults.rotary_base) << name;
    EXPECT_EQ(read_config.relative_max_distance, relative ? 100 : defaults.relative_max_distance)
        << name;
  }
}

// A config.json may have options of positions that its model does not use.
TEST_F(ModelFolder, OptionsWithoutEffectAreReadButNotWritten) {
  const ModelConfig read = read_model_config(
      R"({"family": "transformer", "position": "rotary", "max_positions": 9})", "x");
  EXPECT_EQ(read.as<TransformerConfig>().max_positions, 9);
  EXPECT_EQ(read->to_json().find("max_positions"), std::string::npos) << read->to_json();
  EXPECT_NE(read->to_json().find("rotary_base"), std::string::npos) << read->to_json();
}

TEST_F(ModelFolder, ReadsAndWritesF64) {
  const std::unique_ptr<Model> wide = load_model(path_, context_, {.dtype = DType::f64});
  save_model(*wide, path_);
  const std::unique_ptr<Model> narrow = load_model(path_, context_);
  EXPECT_EQ(largest_difference(to_host<double>(wide->parameters().weights()),
                               to_host<float>(narrow->parameters().weights())),
            0);
}

TEST_F(ModelFolder, AMissingFolderOrFileIsAnError) {
  EXPECT_NE(error_of([&] {
              load_model(folder_.path() / "nowhere", context_);
            }).find("there is no such folder"),
            std::string::npos);
  EXPECT_NE(error_of([&] { load_model(folder_.path(), context_); }).find("has no config.json"),
            std::string::npos);
  std::filesystem::remove(path_ / "model.safetensors");
  expect_refused("model.safetensors");
}

TEST_F(ModelFolder, AnErrorAboutAnUnknownKeyNamesTheNearestKey) {
  change_config("\"dropout\"", "\"droput\"");
  expect_refused("unknown key 'droput'. Did you mean 'dropout'?");
}

TEST_F(ModelFolder, AWrongValueIsAnErrorWithItsLine) {
  change_config("\"width\": 40", "\"width\": \"forty\"");
  expect_refused(
      "config.json:7: 'width' must be a whole number from 1 to 65536, not the text 'forty'.");
}

TEST_F(ModelFolder, HeadsMustDivideTheWidth) {
  change_config("\"heads\": 2", "\"heads\": 3");
  expect_refused("'heads' is 3, but a width of 40 cannot be divided into that many heads");
}

TEST_F(ModelFolder, ContradictoryAttentionOptionsAreRefused) {
  change_config("\"kv_heads\": 0", "\"kv_heads\": 3");
  expect_refused("'kv_heads' is 3, but 2 heads cannot share that many");
  change_config("\"kv_heads\": 3", "\"kv_heads\": 1");
  change_config("\"head_width\": 0", "\"head_width\": 5");
  change_config("\"position\": \"sinusoidal\"", "\"position\": \"rotary\"");
  expect_refused("the head width must be even, not 5");
  change_config("\"position\": \"rotary\"", "\"position\": \"relative\", \"relative_buckets\": 3");
  expect_refused(
      "3 buckets of relative positions in two directions cannot cover a distance of 128");
  change_config("\"relative_buckets\": 3", "\"relative_buckets\": 512");
  expect_refused("512 buckets of relative positions");
}

TEST_F(ModelFolder, AbsurdSizesAreRefusedBeforeMemoryIsAllocated) {
  change_config("\"width\": 40", "\"width\": 65536");
  change_config("\"encoder_layers\": 2", "\"encoder_layers\": 1024");
  expect_refused("has the shape");
}

TEST_F(ModelFolder, AnUnknownFamilyIsRefused) {
  change_config("\"transformer\"", "\"oracle\"");
  expect_refused("'family' must be one of transformer, ");
}

TEST_F(ModelFolder, TheFamilyMustBeAText) {
  change_config("\"transformer\"", "3");
  expect_refused("config.json:2: 'family' must be a text, not '3'.");
  change_config("\"family\": 3,", "");
  expect_refused("'family' is missing");
}

TEST_F(ModelFolder, DeeplyNestedJsonIsRefused) {
  write_text(path_ / "config.json",
             "{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}");
  expect_refused("nested too deeply");
}

TEST_F(ModelFolder, DuplicateKeysAreRefusedAndMessagesHaveNoControlCharacters) {
  change_config("\"heads\": 2", "\"heads\": 2, \"heads\": 4");
  expect_refused("the key 'heads' appears twice");
  change_config("\"heads\": 2, \"heads\": 4", "\"heads\": 2, \"\\u001b[2J\": 4");
  expect_refused("unknown key '?[2J'");
}

TEST_F(ModelFolder, BrokenJsonIsRefused) {
  write_text(path_ / "config.json", "{\"family\": \"transformer\"");
  expect_refused("not valid JSON");
  write_text(path_ / "config.json", "[1]");
  expect_refused("object");
  write_text(path_ / "config.json", "");
  expect_refused("not valid JSON");
}

TEST_F(ModelFolder, MissingAndUnknownTensorsAreRefused) {
  change_config("\"encoder_layers\": 2", "\"encoder_layers\": 3");
  expect_refused("the tensor 'encoder.layers.2.self_attention.qkv.weight' is missing");
  change_config("\"encoder_layers\": 3", "\"encoder_layers\": 1");
  expect_refused("is not part of the model");
}

TEST_F(ModelFolder, ATensorOfTheWrongShapeIsRefused) {
  change_config("\"feed_forward\": 72", "\"feed_forward\": 73");
  expect_refused("has the shape [72, 40], but config.json asks for [73, 40]");
}

TEST_F(ModelFolder, TruncatedWeightsAreRefused) {
  std::filesystem::resize_file(path_ / "model.safetensors", 1000);
  expect_refused("model.safetensors");
}

TEST_F(ModelFolder, IntegerWeightsAreRefused) {
  const SafetensorsFile file = SafetensorsFile::open(path_ / "model.safetensors");
  std::vector<std::vector<std::byte>> values;
  std::vector<SafetensorsEntry> entries;
  for (const StoredTensor& tensor : file.tensors()) {
    values.push_back(file.values<std::byte>(tensor));
    entries.push_back({tensor.name, tensor.dtype, tensor.shape, values.back()});
  }
  entries[0].dtype = DType::i32;
  write_safetensors(path_ / "other.safetensors", entries);
  std::filesystem::rename(path_ / "other.safetensors", path_ / "model.safetensors");
  expect_refused("has i32 numbers");
}

TEST_F(ModelFolder, SavingToAReadOnlyFolderIsAnError) {
  EXPECT_NE(error_of([&] {
              save_model(*make_small<Transformer>(context_, small_config()), "/proc/nunchi");
            }).find("cannot"),
            std::string::npos);
}

}  // namespace
}  // namespace nunchi::testing
