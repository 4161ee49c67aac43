// An encoder-decoder whose source consists of features: gradients, learning, search.
#include <algorithm>
#include <fstream>

#include "nunchi/data/prepare.h"
#include "nunchi/decoding/searcher.h"
#include "nunchi/kernels/product.h"
#include "nunchi/models/format/folder.h"
#include "nunchi/training/learner.h"
#include "nunchi/training/objectives/translation.h"
#include "tests/data/npy_files.h"
#include "tests/files.h"
#include "tests/gradient_check.h"
#include "tests/models/small_models.h"
#include "tests/training/piece_tokenizer.h"

namespace nunchi::testing {
namespace {

constexpr std::int64_t kFeatureWidth = 5;

TransformerConfig feature_config(std::int64_t vocabulary = 37) {
  TransformerConfig config = small_config(vocabulary);
  config.source_feature_width = kFeatureWidth;
  return config;
}

std::vector<Features> random_features(const std::vector<std::int64_t>& rows, std::uint64_t seed) {
  std::vector<Features> examples;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    examples.push_back({.width = kFeatureWidth,
                        .values = random_values<float>(rows[i] * kFeatureWidth, seed * 1000 + i)});
  }
  return examples;
}

TEST(FeatureSource, GradientsAgreeWithCentralDifferences) {
  CpuContext context({.threads = 2});
  for (const nn::PositionKind position :
       {nn::PositionKind::sinusoidal, nn::PositionKind::learned, nn::PositionKind::rotary}) {
    TransformerConfig config = feature_config(7);
    config.width = 8;
    config.feed_forward = 5;
    config.max_positions = 6;
    config.position = position;
    const auto model =
        make_small<Transformer>(context, config, {.dtype = DType::f64, .gradients = true});
    const PairBatch batch =
        make_pair_batch(make_feature_batch(context, random_features({3, 1, 5}, 1), kFeatureWidth),
                        sentences_of({2, 0, 4}, 7, 2), 7, {.tokens = kTokens});
    expect_gradients(context, model->parameters(),
                     [&] { return model->loss(batch, {.smoothing = 0.1, .chunk = 4}).total; });
  }
}

TEST(FeatureSource, AnExampleGetsTheSameHypothesesInAnyBatch) {
  if (!kernels::rows_are_independent()) {
    GTEST_SKIP() << kernels::product_library()
                 << ": the number of rows in a product may change a row's bits";
  }
  CpuContext context({.threads = 2});
  const auto model = make_small<Transformer>(context, feature_config());
  const std::vector<Features> examples = random_features({4, 70, 1, 9}, 3);
  const SearchOptions options{.beam_size = 3, .n_best = 3, .max_length = 9};
  const auto hypotheses_of = [&](std::span<const Features> batch) {
    return search(*model,
                  {.source = make_feature_batch(context, batch, kFeatureWidth), .tokens = kTokens},
                  options);
  };
  const auto together = hypotheses_of(examples);
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const auto alone = hypotheses_of(std::span(examples).subspan(i, 1));
    ASSERT_EQ(alone[0].size(), together[i].size());
    for (std::size_t h = 0; h < alone[0].size(); ++h) {
      EXPECT_EQ(alone[0][h].tokens, together[i][h].tokens);
      EXPECT_EQ(alone[0][h].score, together[i][h].score);
    }
  }
}

TEST(FeatureSource, TheConfigKeepsTheFeatureWidth) {
  const std::string json = Transformer(feature_config()).config_json();
  EXPECT_NE(json.find("\"source_features\": 5"), std::string::npos) << json;
  EXPECT_EQ(json.find("source_vocabulary"), std::string::npos) << json;
  const auto reread_model = make_model(json, "config.json");
  EXPECT_EQ(reread_model->config_json(), json);
  EXPECT_EQ(dynamic_cast<const TranslationModel&>(*reread_model).input_sizes().source_feature_width,
            kFeatureWidth);
  // The config of a model that reads tokens does not mention features.
  const std::string token_model_json = Transformer(small_config()).config_json();
  EXPECT_EQ(token_model_json.find("source_features"), std::string::npos) << token_model_json;
}

TEST(FeatureSource, TheWrongKindOfSourceIsRefused) {
  CpuContext context({.threads = 1});
  const auto feature_model = make_small<Transformer>(context, feature_config());
  const auto token_model = make_small<Transformer>(context, small_config());
  const Source tokens = make_token_batch(context, std::vector<Tokens>{{5}}, 37);
  const Source features = make_feature_batch(context, random_features({2}, 1), kFeatureWidth);
  EXPECT_NE(error_of([&] { feature_model->encode(tokens); }).find("the model reads features"),
            std::string::npos);
  EXPECT_NE(error_of([&] { token_model->encode(features); }).find("the model reads tokens"),
            std::string::npos);
  const std::vector<Features> wide{{.width = 6, .values = std::vector<float>(6)}};
  EXPECT_NE(error_of([&] {
              feature_model->encode(make_feature_batch(context, wide, 6));
            }).find("features of width 6"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              ModelConfig(RnnConfig())->make({.target_vocabulary = 9, .source_feature_width = 2});
            }).find("reads tokens, not features"),
            std::string::npos);
}

// A toy task: each feature row is one of a few patterns with noise; the target names the patterns.
class FeatureTask {
 public:
  static std::vector<std::string> names() { return {"red", "green", "blue", "black"}; }

  // Writes `count` examples, each a file features/N.npy and a line of target.txt.
  FeatureTask(const std::filesystem::path& folder, int count, std::uint64_t seed) {
    part.features = folder / "features";
    part.target = folder / "target.txt";
    std::filesystem::create_directories(part.features);
    std::ofstream lines(part.target);
    for (int i = 0; i < count; ++i) {
      const auto draws = random_values<double>(8, seed * 1000 + static_cast<std::uint64_t>(i));
      const auto rows = 1 + static_cast<std::size_t>((draws[7] + 1) * 2.5);
      Features features{.width = kFeatureWidth, .values = {}};
      for (std::size_t row = 0; row < rows; ++row) {
        const auto pattern = static_cast<std::size_t>((draws[row] + 1) * 2);
        lines << (row > 0 ? " " : "") << names()[pattern];
        const auto values = random_values<float>(kFeatureWidth, 77 + pattern);
        const auto noise = random_values<float>(kFeatureWidth, seed + 13 * row, 0.1);
        for (std::size_t f = 0; f < values.size(); ++f) {
          features.values.push_back(values[f] + noise[f]);
        }
      }
      lines << "\n";
      write_npy(part.features / (std::to_string(1000 + i) + ".npy"), features);
    }
  }

  CorpusPart part;
};

TEST(FeatureSource, AModelLearnsFromAFolderOfFeaturesAndTranslatesThem) {
  const TemporaryFolder folder;
  const PieceTokenizer tokenizer(FeatureTask::names());
  const DecoderTokens tokens = decoder_tokens(tokenizer.special());
  const auto prepared = [&](const char* name, int count, std::uint64_t seed) {
    return prepare_pairs(FeatureTask(folder / name, count, seed).part, {tokenizer, tokenizer},
                         {.cache = folder / "cache"});
  };
  const PairStore pairs = prepared("train", 300, 1), held_out = prepared("test", 40, 2);

  CpuContext context({.threads = 2});
  TransformerConfig config = small_config();
  config.norm_placement = nn::NormPlacement::pre;
  const auto made = ModelConfig(config)->make({.target_vocabulary = tokenizer.vocabulary(),
                                               .source_feature_width = pairs.features()->width()});
  auto& model = dynamic_cast<Transformer&>(*made);
  model.parameters().allocate(context, {.gradients = true});
  model.parameters().initialize(3);
  const TranslationObjective objective(model, context, tokens, 0);
  SingleProcess single_process;
  Learner learner(model, objective, {.adam = {.max_norm = 1}}, single_process);
  const BatchOrder order({{&pairs, 1}}, {.batch_tokens = 120});
  BatchQueue queue(order);
  constexpr std::uint64_t kSteps = 400;
  for (std::uint64_t step = 1; step <= kSteps; ++step) {
    const HostBatch batch = queue.next();
    learner.step(std::span(&batch, 1), {.seed = 1, .step = step},
                 3e-3 * static_cast<double>(kSteps - step) / kSteps);
  }

  std::vector<Features> sources;
  std::vector<Tokens> targets;
  for (std::int64_t i = 0; i < held_out.size(); ++i) {
    const auto values = held_out.features()->values(i);
    sources.push_back({.width = kFeatureWidth, .values = {values.begin(), values.end()}});
    const auto target = held_out.target(i);
    targets.emplace_back(target.begin(), target.end());
  }
  const auto found = search(
      model, {.source = make_source(context, sources, model.input_sizes()), .tokens = tokens},
      {.beam_size = 2});
  int correct = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) correct += found[i][0].tokens == targets[i];
  EXPECT_GE(correct, 36) << "of " << targets.size();

  // The model can be saved and loaded.
  save_model(model, folder / "model");
  const auto loaded = load_model(folder / "model", context);
  EXPECT_EQ(loaded->config_json(), model.config_json());
}

}  // namespace
}  // namespace nunchi::testing
