// Properties of the family gpt; every_model_test.cpp and golden_test.cpp test all families.
#include "nunchi/models/families/gpt.h"

#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

TEST(Gpt, Gpt2HasTheOriginalParameterCountAndInitialDeviations) {
  const Gpt model(preset_of<GptConfig>("gpt2", 50257));
  EXPECT_EQ(model.parameters().count(), 124'439'808);
  EXPECT_EQ(model.max_length(), 1024);
  const auto deviation = [&](const char* name) {
    return model.parameters().find(name)->init.scale;
  };
  EXPECT_EQ(deviation("decoder.embedding.weight"), 0.02);
  EXPECT_EQ(deviation("decoder.position.weight"), 0.02);
  EXPECT_EQ(deviation("decoder.layers.3.self_attention.qkv.weight"), 0.02);
  EXPECT_EQ(deviation("decoder.layers.3.self_attention.output.weight"), 0.02 / std::sqrt(24.0));
  EXPECT_EQ(deviation("decoder.layers.11.feed_forward.down.weight"), 0.02 / std::sqrt(24.0));
  EXPECT_EQ(deviation("decoder.layers.11.feed_forward.down.bias"), 0);
}

// Without the look-ahead mask, the last token changes every score; with it, only its own.
TEST(Gpt, LooksAheadOnlyWithoutTheMask) {
  for (const bool masked : {true, false}) {
    CpuContext context({.threads = 1});
    GptConfig config = small_gpt_config();
    config.look_ahead_mask = masked;
    const auto model = make_small<Gpt>(context, config, {.gradients = true});
    const auto hidden = [&](std::int32_t last) {
      Trace trace({Tap::stack_output});
      const TraceScope scope(context, trace);
      model->loss(make_text_batch(context, std::vector<Tokens>{{3, 4, 5, last, 7}}, 37), {});
      return trace.find(Tap::stack_output, "decoder", -1)->values;
    };
    std::vector<float> before = hidden(6), after = hidden(8);
    const auto earlier = static_cast<std::ptrdiff_t>(3 * config.width);
    EXPECT_EQ(std::equal(before.begin(), before.begin() + earlier, after.begin()), masked);
    EXPECT_NE(before, after);
  }
}

// Options of experiments are written only where they leave something out, so that the configs of
// other models stay as they are.
TEST(Gpt, ConfigsHaveOptionsOfExperimentsOnlyWhereTheyAreUsed) {
  GptConfig config = small_gpt_config();
  for (const char* key : {"look_ahead_mask", "residual_connections", "normalize"}) {
    EXPECT_EQ(ModelConfig(config)->to_json().find(key), std::string::npos) << key;
  }
  config.look_ahead_mask = config.residual_connections = config.normalize = false;
  const std::string json = ModelConfig(config)->to_json();
  const GptConfig read = read_model_config(json, "x").as<GptConfig>();
  EXPECT_FALSE(read.look_ahead_mask || read.residual_connections || read.normalize) << json;
}

TEST(Gpt, ErrorsNameTheAbilitiesOfTheModel) {
  const Gpt gpt(small_gpt_config());
  EXPECT_EQ(error_of([&] { as_translation_model(gpt); }),
            "a model of the family gpt cannot translate. It can continue a text: see 'nunchi "
            "generate --help'.");
  const Transformer transformer(small_config());
  EXPECT_EQ(error_of([&] { as_language_model(transformer); }),
            "a model of the family transformer cannot continue a text. It can translate: see "
            "'nunchi translate --help'.");
  EXPECT_EQ(&as_language_model(gpt), &gpt);
}

TEST(Gpt, RefusesInvalidConfigs) {
  const std::string whole = ModelConfig(small_gpt_config())->to_json();
  EXPECT_EQ(read_model_config(whole, "x")->to_json(), whole);
  const auto error_with = [](const std::string& json) {
    return error_of([&] { read_model_config(json, "c.json"); });
  };
  EXPECT_NE(error_with(R"({"family": "gpt", "layers": 0})")
                .find("'layers' must be a whole number from 1"),
            std::string::npos);
  EXPECT_NE(
      error_with(R"({"family": "gpt", "decoder_layers": 2})").find("unknown key 'decoder_layers'"),
      std::string::npos);
  EXPECT_NE(error_with(R"({"family": "gpt", "width": 10, "heads": 3})")
                .find("cannot be divided into that many heads"),
            std::string::npos);
  EXPECT_NE(error_with(R"({"layers": 2})").find("'family' is missing"), std::string::npos);
  EXPECT_THROW(model_preset("huge"), UsageError);
}

}  // namespace
}  // namespace nunchi::testing
