// The causal language model: against Hugging Face's GPT-2, and what must hold whatever the weights.
#include "nunchi/models/gpt.h"

#include <algorithm>

#include "nunchi/autograd/tape.h"
#include "nunchi/kernels/product.h"
#include "nunchi/models/folder.h"
#include "tests/files.h"
#include "tests/golden/golden_file.h"
#include "tests/gradient_check.h"
#include "tests/models/small_gpt.h"

namespace nunchi::testing {
namespace {

void expect_golden(const char* name, DType dtype, double tolerance) {
  CpuContext context({.threads = 2});
  context.arena().poison();
  const std::string path = golden_path(name);
  const SafetensorsFile file = SafetensorsFile::open(path);
  const GptConfig config = GptConfig::from_json(file.metadata().at("config"), path);
  const auto model = make_gpt(context, config, {.dtype = dtype, .gradients = true});
  for (const nn::ParameterEntry& entry : model->parameters().entries()) {
    convert(from_host(context, values_of<float>(file, "parameters/" + entry.name), entry.shape),
            entry.variable.value());
  }
  model->parameters().changed();
  const TextBatch batch =
      make_text_batch(context, sentences_in(file, "text"), config.target_vocabulary);
  const std::int64_t rows = batch.inputs.rows.rows;
  const Tensor logits = model->logits(model->hidden(batch.inputs), batch.inputs.rows).value();
  EXPECT_LE(largest_difference(to_host_f64(logits.rows(0, rows)), values_of<float>(file, "logits")),
            10 * tolerance);
  Tape tape(context);
  const VocabularyLoss loss = model->loss(batch, {.chunk = 16});
  tape.backward(loss.total);
  EXPECT_LE(largest_difference(to_host_f64(loss.tokens.rows(0, rows)),
                               values_of<float>(file, "token_losses")),
            10 * tolerance);
  const double expected = values_of<float>(file, "loss")[0];
  EXPECT_NEAR(to_host<double>(loss.total.value())[0], expected, tolerance * expected);
  for (const nn::ParameterEntry& entry : model->parameters().entries()) {
    const std::vector<float> wanted = values_of<float>(file, "gradients/" + entry.name);
    double largest = 1;
    for (const float value : wanted) largest = std::max(largest, std::fabs(double{value}));
    EXPECT_LE(largest_difference(to_host_f64(entry.variable.gradient()), wanted),
              tolerance * largest)
        << entry.name;
  }
}

TEST(Gpt, LogitsLossAndGradientsAgreeWithHuggingFace) {
  expect_golden("gpt", DType::f64, 1e-6);
  expect_golden("gpt", DType::f32, 1e-5);
}

TEST(Gpt, WithItsOptionsItIsHuggingFacesLlama) {
  expect_golden("llama", DType::f64, 1e-6);
  expect_golden("llama", DType::f32, 1e-5);
}

void expect_gradients_of(GptConfig config) {
  CpuContext context({.threads = 1});
  context.arena().poison();
  config.target_vocabulary = 7;
  config.width = 6;
  config.feed_forward = 5;
  config.max_positions = 8;
  const auto model = make_gpt(context, config, {.dtype = DType::f64, .gradients = true});
  const TextBatch batch = make_text_batch(context, sentences_of({4, 2, 6}, 7, 1), 7);
  expect_gradients(context, model->parameters(),
                   [&] { return model->loss(batch, {.chunk = 4}).total; });
}

TEST(Gpt, GradientsAgreeWithCentralDifferences) {
  GptConfig config = small_gpt_config();
  config.dropout = config.attention_dropout = 0.2f;
  expect_gradients_of(config);
  for (GptConfig each : gpt_configs()) {
    each.relative_buckets = 4;  // all of them are met by texts of a few tokens
    each.relative_max_distance = 3;
    expect_gradients_of(each);
  }
}

TEST(Gpt, AFutureTokenChangesNoEarlierLogit) {
  CpuContext context({.threads = 2});
  context.arena().poison();
  for (const GptConfig& config : gpt_configs()) {
    const auto model = make_gpt(context, config);
    std::vector<Tokens> texts = sentences_of({5, 130}, 37, 2);
    const auto logits = [&] { return logits_of(*model, make_token_batch(context, texts, 37)); };
    const std::vector<float> before = logits();
    for (const std::size_t changed : {0, 1, 30, 63, 64, 100, 129}) {
      std::int32_t& token = texts[1][changed];
      const std::int32_t kept = std::exchange(token, (token + 1) % 37);
      const std::vector<float> after = logits();
      token = kept;
      const auto unchanged = static_cast<std::ptrdiff_t>((texts[0].size() + changed) * 37);
      EXPECT_TRUE(same_bits(std::vector(before.begin(), before.begin() + unchanged),
                            std::vector(after.begin(), after.begin() + unchanged)))
          << "token " << changed;
      EXPECT_FALSE(same_bits(before, after)) << "the token must matter to later rows";
    }
  }
}

TEST(Gpt, ATextGetsTheSameLogitsInAnyBatch) {
  if (!kernels::rows_are_independent()) GTEST_SKIP() << "rows are not independent here";
  CpuContext context({.threads = 2});
  const auto model = make_gpt(context, small_gpt_config());
  const std::vector<Tokens> texts = sentences_of({7, 1, 100, 33, 64, 2}, 37, 3);
  const std::vector<float> together = logits_of(*model, make_token_batch(context, texts, 37));
  auto at = together.begin();
  for (const Tokens& text : texts) {
    const std::vector<float> alone =
        logits_of(*model, make_token_batch(context, std::vector<Tokens>{text}, 37));
    EXPECT_TRUE(
        same_bits(alone, std::vector<float>(at, at + static_cast<std::ptrdiff_t>(alone.size()))));
    at += static_cast<std::ptrdiff_t>(alone.size());
  }
}

TEST(Gpt, IsReadAsItWasWritten) {
  const TemporaryFolder folder;
  CpuContext context({.threads = 1});
  const auto model = make_gpt(context, modern_gpt_config());
  save_model(*model, folder.path());
  const auto read = load_model(folder.path(), context);
  EXPECT_EQ(read->family(), "gpt");
  EXPECT_EQ(read->config_json(), model->config_json());
  EXPECT_TRUE(same_bits(to_host<float>(read->parameters().weights()),
                        to_host<float>(model->parameters().weights())));
}

TEST(Gpt, Gpt2HasItsParametersAndStartsAsItDid) {
  const Gpt model(GptConfig::preset("gpt2", 50257));
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

TEST(Gpt, WhatItCannotDoIsASentence) {
  const Gpt gpt(small_gpt_config());
  EXPECT_EQ(error_of([&] { as_translation_model(gpt); }),
            "a model of the family gpt cannot translate. It can go on with a text: see 'nunchi "
            "generate --help'.");
  const Transformer transformer(small_config());
  EXPECT_EQ(error_of([&] { as_language_model(transformer); }),
            "a model of the family transformer cannot go on with a text. It can translate: see "
            "'nunchi translate --help'.");
  EXPECT_EQ(&as_language_model(gpt), &gpt);
}

TEST(Gpt, ConfigsThatCannotBe) {
  const std::string whole = small_gpt_config().to_json();
  EXPECT_EQ(GptConfig::from_json(whole, "x").to_json(), whole);
  const auto error_with = [](const std::string& json) {
    return error_of([&] { GptConfig::from_json(json, "c.json"); });
  };
  EXPECT_NE(error_with(R"({"layers": 0})").find("'layers' is a whole number from 1"),
            std::string::npos);
  EXPECT_NE(error_with(R"({"decoder_layers": 2})").find("unknown key 'decoder_layers'"),
            std::string::npos);
  EXPECT_NE(error_with(R"({"width": 10, "heads": 3})").find("cannot be cut into 3 heads"),
            std::string::npos);
  EXPECT_NE(error_with(R"({"family": "transformer"})").find("'family' is gpt here"),
            std::string::npos);
  EXPECT_THROW(GptConfig::preset("huge", 10), UsageError);
}

}  // namespace
}  // namespace nunchi::testing
