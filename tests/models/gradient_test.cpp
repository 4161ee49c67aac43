// Compares gradients of a two-layer model with central differences in f64, for several options.
// every_model_test.cpp does so for families and positions.
#include "tests/gradient_check.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

void check_model(TransformerConfig config) {
  CpuContext context({.threads = 1});
  context.arena().poison();
  config.source_vocabulary = config.target_vocabulary = 7;
  config.width = 6;
  config.feed_forward = 5;
  const auto model =
      make_small<Transformer>(context, config, {.dtype = DType::f64, .gradients = true});
  const PairBatch batch =
      pair_batch(context, sentences_of({3, 1, 2}, 7, 1), sentences_of({2, 0, 4}, 7, 2), 7);
  expect_gradients(context, model->parameters(),
                   [&] { return model->loss(batch, {.smoothing = 0.1, .chunk = 4}).total; });
}

TEST(ModelGradients, PreNormRmsSwigluLearnedPositionsUntied) {
  TransformerConfig config = small_config();
  config.norm_placement = nn::NormPlacement::pre;
  config.norm = NormKind::rms;
  config.activation = ActivationKind::swiglu;
  config.tied_embeddings = TiedEmbeddings::none;
  config.position = nn::PositionKind::learned;
  config.max_positions = 8;
  config.activation_dropout = 0.1f;
  check_model(config);
}

TEST(ModelGradients, PreNormGelu) {
  TransformerConfig config = small_config();
  config.norm_placement = nn::NormPlacement::pre;
  config.activation = ActivationKind::gelu;
  check_model(config);
}

// Experiments leave out the residual connections, the norms or the look-ahead mask.
TEST(ModelGradients, WithoutResidualsNormsOrMask) {
  for (const nn::NormPlacement placement : {nn::NormPlacement::post, nn::NormPlacement::pre}) {
    for (int left_out = 1; left_out < 8; ++left_out) {
      SCOPED_TRACE(left_out);
      TransformerConfig config = small_config();
      config.norm_placement = placement;
      // Without norms, the differences would cross kinks of ReLU.
      config.activation = ActivationKind::gelu;
      config.dropout = 0.1f;
      config.residual_connections = (left_out & 1) == 0;
      config.normalize = (left_out & 2) == 0;
      config.look_ahead_mask = (left_out & 4) == 0;
      check_model(config);
    }
  }
}

}  // namespace
}  // namespace nunchi::testing
