// Properties of the family bert; every_model_test.cpp and golden_test.cpp test all families.
#include "nunchi/models/families/bert.h"

#include "nunchi/models/format/folder.h"
#include "tests/files.h"
#include "tests/gradient_check.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

TEST(Bert, GradientsOfAClassifierAgreeWithCentralDifferences) {
  BertConfig config = small_bert_config(7);
  config.width = 8;
  config.feed_forward = 5;
  config.dropout = config.attention_dropout = 0.1f;
  config.labels = {"a", "b", "c"};
  CpuContext context({.threads = 1});
  context.arena().poison();
  const auto model = make_small<Bert>(context, config, {.dtype = DType::f64, .gradients = true});
  const TokenBatch texts = make_token_batch(context, sentences_of({4, 2, 6}, 7, 1), 7);
  expect_gradients(context, model->parameters(),
                   [&] { return label_loss_of(*model, texts).total; });
}

TEST(Bert, ScoresOfMaskedRowsEqualThoseOfAllRows) {
  CpuContext context({.threads = 2});
  const auto model = make_small<Bert>(context, small_bert_config());
  const std::vector<MaskedText> texts = masked_texts(sentences_of({9, 4, 20}, 37, 1));
  const MaskedBatch batch = make_masked_batch(context, texts, 37);
  EXPECT_EQ(batch.masked.lengths, (std::vector<std::int32_t>{3, 0, 7}));
  const std::vector<float> masked =
      to_host<float>(model->scores(masked_rows(*model, batch), batch.masked));
  const std::vector<float> all = scores_of(*model, batch.inputs);
  std::size_t offset = 0, row = 0;
  for (const MaskedText& text : texts) {
    for (const std::int32_t position : text.positions) {
      const std::size_t from = (row + static_cast<std::size_t>(position)) * 37;
      for (std::size_t i = 0; i < 37; ++i) EXPECT_NEAR(masked[offset + i], all[from + i], 1e-5);
      offset += 37;
    }
    row += text.inputs.size();
  }
  EXPECT_EQ(offset, 37u * 10u);
}

TEST(Bert, LabelsAreLoadedAsTheyWereSaved) {
  const TemporaryFolder folder;
  CpuContext context({.threads = 2});
  BertConfig config = small_bert_config();
  config.labels = {"no", "yes"};
  const auto model = make_small<Bert>(context, config);
  save_model(*model, folder.path());
  const std::unique_ptr<Model> loaded = load_model(folder.path(), context);
  EXPECT_EQ(as_classifier(*loaded).labels(), config.labels);
  EXPECT_TRUE(same_bits(to_host<float>(loaded->parameters().weights()),
                        to_host<float>(model->parameters().weights())));
}

TEST(Bert, HasHuggingFacesParameterCountWithoutSegments) {
  EXPECT_EQ(Bert(preset_of<BertConfig>("bert-base", 30522)).parameters().count(), 109512762);
}

TEST(Bert, ErrorsNameTheAbilitiesOfTheModel) {
  const Bert plain(small_bert_config());
  EXPECT_EQ(error_of([&] { as_translation_model(plain); }),
            "a model of the family bert cannot translate. It can predict masked tokens: see "
            "'nunchi fill --help'.");
  EXPECT_NE(error_of([&] { as_classifier(plain); }).find("has no labels yet"), std::string::npos);
  EXPECT_EQ(&as_masked_language_model(plain), &plain);
  BertConfig config = small_bert_config();
  config.labels = {"no", "yes"};
  const Bert classifier(config);
  EXPECT_EQ(&as_classifier(classifier), &classifier);
  const Transformer transformer(small_config());
  EXPECT_EQ(error_of([&] { as_masked_language_model(transformer); }),
            "a model of the family transformer cannot predict masked tokens. It can translate: see "
            "'nunchi translate --help'.");
  EXPECT_NE(error_of([&] { as_classifier(transformer); }).find("cannot classify texts"),
            std::string::npos);
}

TEST(Bert, RefusesInvalidOptions) {
  const auto message = [](const std::function<void(BertConfig&)>& change) {
    BertConfig config = small_bert_config();
    change(config);
    return error_of([&] { Bert{config}; });
  };
  EXPECT_NE(message([](BertConfig& c) {
              c.labels = {"b", "a", "b"};
            }).find("'labels' names 'b' twice"),
            std::string::npos);
  EXPECT_NE(message([](BertConfig& c) { c.max_positions = 2; }).find("max_positions"),
            std::string::npos);
  EXPECT_NE(message([](BertConfig& c) { c.heads = 3; }).find("heads"), std::string::npos);
  EXPECT_EQ(message([](BertConfig& c) { c.target_vocabulary = 0; }),
            "the model's options: 'vocabulary' must be at least 1, not 0.");
  EXPECT_NE(error_of([] { model_preset("huge"); }).find("bert-base"), std::string::npos);
}

TEST(Bert, RefusesInvalidTexts) {
  CpuContext context;
  BertConfig config = small_bert_config();
  config.max_positions = 8;
  const auto model = make_small<Bert>(context, config);
  const auto error_for = [&](std::int32_t length, std::int64_t vocabulary) {
    return error_of([&] {
      model->hidden(make_token_batch(context, sentences_of({length}, 37, 1), vocabulary));
    });
  };
  EXPECT_NE(error_for(9, 37).find("8 positions"), std::string::npos);
  EXPECT_NE(error_for(5, 40).find("made for 40 text tokens"), std::string::npos);
  EXPECT_NE(error_of([&] {
              make_masked_batch(context, std::vector<MaskedText>{{{1, 2}, {2}, {5}}}, 37);
            }).find("no token at position 2"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              make_masked_batch(context, std::vector<MaskedText>{{{1, 2}, {1}, {}}}, 37);
            }).find("0 labels"),
            std::string::npos);
}

}  // namespace
}  // namespace nunchi::testing
