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
