#include "nunchi/models/check_device.h"

#include "nunchi/kernels/limits.h"
#include "nunchi/models/families/t5.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

constexpr const char* kNoError = "no error";

template <class Checked>
std::string refusal(const Checked& checked, Device device) {
  return error_of([&] { check_device(checked, device, "here"); });
}

TEST(CheckDevice, EveryPresetFitsEveryDevice) {
  for (const Device device : {Device::cpu, Device::cuda}) {
    for (const char* name : {"tiny", "base", "big", "gpt2", "bert-base", "rnn-base", "t5-base"}) {
      EXPECT_EQ(refusal(model_preset(name), device), kNoError) << name;
    }
  }
}

TEST(CheckDevice, HeadsAreAsWideAsAttentionTakes) {
  TransformerConfig config;
  config.width = 4096;
  config.heads = 4;
  EXPECT_EQ(refusal(config, Device::cuda), kNoError);
  config.heads = 2;
  EXPECT_EQ(refusal(config, Device::cpu), kNoError);
  EXPECT_EQ(
      refusal(config, Device::cuda),
      "here: heads are 2,048 columns wide, and attention on a GPU supports at most 1,024. Use "
      "more heads, or --device cpu.");
  config.head_width = 1024;
  EXPECT_EQ(refusal(config, Device::cuda), kNoError);
}

// Clipped distances have numbers for keys after the query only where those are seen.
TEST(CheckDevice, RelativePositionsAreThoseThatTheStacksHave) {
  const auto clipped_at = [](auto config, int distance) {
    config.position = nn::PositionKind::relative;
    config.relative_kind = nn::RelativeKind::clipped;
    config.relative_max_distance = distance;
    return config;
  };
  EXPECT_EQ(refusal(clipped_at(BertConfig(), 128), Device::cuda), kNoError);
  EXPECT_NE(refusal(clipped_at(BertConfig(), 129), Device::cuda), kNoError);
  EXPECT_EQ(refusal(clipped_at(BertConfig(), 129), Device::cpu), kNoError);
  EXPECT_EQ(refusal(clipped_at(GptConfig(), 256), Device::cuda), kNoError);
  EXPECT_NE(refusal(clipped_at(GptConfig(), 257), Device::cuda), kNoError);
  EXPECT_NE(refusal(clipped_at(TransformerConfig(), 129), Device::cuda).find("259 numbers"),
            std::string::npos);
  TransformerConfig t5 = t5_config();
  t5.relative_buckets = 258;
  t5.relative_max_distance = 1000;
  EXPECT_NE(refusal(t5, Device::cuda).find("relative_buckets"), std::string::npos);
}

TEST(CheckDevice, AVocabularyIsOneThatCanBeChosenFrom) {
  const std::int64_t most = kernels::limits_of(Device::cuda).vocabulary;
  const auto expect_refused = [](const Model& model) {
    EXPECT_NE(refusal(model, Device::cuda).find("the vocabulary has"), std::string::npos);
    EXPECT_EQ(refusal(model, Device::cpu), kNoError);
  };
  expect_refused(Rnn(preset_of<RnnConfig>("rnn-small", most + 1)));
  BertConfig bert;
  bert.target_vocabulary = most + 1;
  expect_refused(Bert(bert));
  bert.target_vocabulary = most;
  EXPECT_EQ(refusal(Bert(bert), Device::cuda), kNoError);
}

}  // namespace
}  // namespace nunchi::testing
