// Shapes and defaults of the family t5. golden_test.cpp compares its results with Hugging Face's,
// and every_model_test.cpp tests all families.
#include "nunchi/models/families/t5.h"

#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

TransformerConfig small_t5() {
  auto config = preset_of<TransformerConfig>("t5-tiny", 37);
  config.width = 16;
  config.head_width = 6;
  config.feed_forward = 20;
  config.encoder_layers = config.decoder_layers = 2;
  return config;
}

TEST(T5, HasHuggingFacesParameterCounts) {
  const auto count = [](const char* name) {
    return Transformer(preset_of<TransformerConfig>(name, 32128)).parameters().count();
  };
  EXPECT_EQ(count("t5-small"), 60506624);
  EXPECT_EQ(count("t5-base"), 222903552);
  EXPECT_EQ(count("t5-v1.1-small"), 76961152);
  EXPECT_EQ(count("t5-v1.1-base"), 247577856);
}

TEST(T5, MissingKeysHaveT5sDefaults) {
  const auto model = make_model(R"({"family": "t5", "width": 32, "heads": 2})", "x");
  EXPECT_EQ(model->family(), "t5");
  const auto& config = model->config().as<TransformerConfig>();
  EXPECT_EQ(config.width, 32);
  EXPECT_EQ(config.position, nn::PositionKind::relative);
  EXPECT_EQ(config.norm, NormKind::rms);
  EXPECT_EQ(config.norm_epsilon, 1e-6);
  EXPECT_FALSE(config.bias);
  EXPECT_FALSE(config.scale_attention);
  EXPECT_FALSE(config.scale_embeddings);
  EXPECT_TRUE(config.scale_output);
}

TEST(T5, OneTableForBothSidesNeedsOneVocabulary) {
  for (const TiedEmbeddings tied : {TiedEmbeddings::all, TiedEmbeddings::inputs}) {
    TransformerConfig config = small_t5();
    config.tied_embeddings = tied;
    config.source_vocabulary = 41;
    EXPECT_NE(error_of([&] { Transformer{config}; }).find("needs one vocabulary"),
              std::string::npos);
  }
}

// T5 scales neither attention scores nor embeddings.
TEST(T5, InitialLogitsHaveADeviationOfAboutOne) {
  CpuContext context;
  Transformer model(preset_of<TransformerConfig>("t5-tiny", 500));
  model.parameters().allocate(context, {});
  model.parameters().initialize(3);
  const PairBatch batch =
      pair_batch(context, sentences_of({20, 30}, 500, 1), sentences_of({25, 15}, 500, 2), 500);
  double squares = 0;
  const std::vector<float> logits = logits_of(model, batch);
  for (const float logit : logits) squares += double{logit} * logit;
  const double deviation = std::sqrt(squares / static_cast<double>(logits.size()));
  EXPECT_GT(deviation, 0.5);
  EXPECT_LT(deviation, 2);
}

}  // namespace
}  // namespace nunchi::testing
