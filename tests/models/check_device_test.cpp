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

TEST(CheckDevice, HeadsWiderThanTheKernelsSupportAreRefused) {
  TransformerConfig config;
  config.width = 4096;
  config.heads = 4;
  EXPECT_EQ(refusal(config, Device::cuda), kNoError);
  config.heads = 2;
  EXPECT_EQ(refusal(config, Device::cpu), kNoError);
  EXPECT_EQ(
      refusal(config, Device::cuda),
      "here: attention heads are 2,048 columns wide, but a GPU supports at most 1,024. Use more "
      "heads, or --device cpu.");
  config.head_width = 1024;
  EXPECT_EQ(refusal(config, Device::cuda), kNoError);
}

// With clipped distances, the table has entries for keys after the query only if a stack attends to
// those keys.
TEST(CheckDevice, TheTableOfRelativePositionsIsLimited) {
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
  EXPECT_NE(refusal(clipped_at(TransformerConfig(), 129), Device::cuda).find("259 entries"),
            std::string::npos);
  TransformerConfig t5 = t5_config();
  t5.relative_buckets = 258;
  t5.relative_max_distance = 1000;
  EXPECT_NE(refusal(t5, Device::cuda).find("relative_buckets"), std::string::npos);
}

TEST(CheckDevice, AVocabularyLargerThanTheKernelsSupportIsRefused) {
  const std::int64_t limit = kernels::limits_of(Device::cuda).vocabulary;
  const auto expect_refused = [](const Model& model) {
    EXPECT_NE(refusal(model, Device::cuda).find("the vocabulary has"), std::string::npos);
    EXPECT_EQ(refusal(model, Device::cpu), kNoError);
  };
  expect_refused(Rnn(preset_of<RnnConfig>("rnn-small", limit + 1)));
  BertConfig bert;
  bert.target_vocabulary = limit + 1;
  expect_refused(Bert(bert));
  bert.target_vocabulary = limit;
  EXPECT_EQ(refusal(Bert(bert), Device::cuda), kNoError);
}

}  // namespace
}  // namespace nunchi::testing
