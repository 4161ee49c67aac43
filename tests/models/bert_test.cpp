// The bidirectional encoder: against Hugging Face's BERT, and what must hold whatever the weights.
#include "nunchi/models/bert.h"

#include <algorithm>

#include "nunchi/kernels/product.h"
#include "nunchi/models/folder.h"
#include "nunchi/trace/trace.h"
#include "tests/files.h"
#include "tests/golden/golden_file.h"
#include "tests/gradient_check.h"
#include "tests/models/small_bert.h"

namespace nunchi::testing {
namespace {

std::vector<MaskedText> masked_texts_in(const SafetensorsFile& file) {
  const std::vector<Tokens> texts = sentences_in(file, "text");
  const auto positions = values_of<std::int32_t>(file, "positions");
  const auto labels = values_of<std::int32_t>(file, "labels");
  std::vector<MaskedText> masked;
  std::size_t at = 0;
  for (const std::int32_t count : values_of<std::int32_t>(file, "position_counts")) {
    MaskedText& text = masked.emplace_back(MaskedText{.inputs = texts[masked.size()]});
    for (const std::size_t end = at + static_cast<std::size_t>(count); at < end; ++at) {
      text.positions.push_back(positions[at]);
      text.labels.push_back(labels[at]);
    }
  }
  return masked;
}

void expect_golden(DType dtype, double tolerance) {
  CpuContext context({.threads = 2});
  context.arena().poison();
  const std::string path = golden_path("bert");
  const SafetensorsFile file = SafetensorsFile::open(path);
  const BertConfig config = BertConfig::from_json(file.metadata().at("config"), path);
  const auto model = make_bert(context, config, {.dtype = dtype, .gradients = true});
  for (const nn::ParameterEntry& entry : model->parameters().entries()) {
    convert(from_host(context, values_of<float>(file, "parameters/" + entry.name), entry.shape),
            entry.variable.value());
  }
  model->parameters().changed();
  const MaskedBatch batch =
      make_masked_batch(context, masked_texts_in(file), config.target_vocabulary);
  const std::int64_t rows = batch.inputs.rows.rows, said = batch.masked.rows;
  const auto expect_near = [&](const Tensor& found, std::int64_t count, const char* name) {
    EXPECT_LE(largest_difference(to_host_f64(found.rows(0, count)), values_of<float>(file, name)),
              10 * tolerance)
        << name;
  };
  expect_near(model->hidden(batch.inputs).value(), rows, "hidden");
  expect_near(model->scores(rows_to_say(*model, batch), batch.masked), said, "logits");
  Tape tape(context);
  const VocabularyLoss loss = loss_of(*model, batch, {.chunk = 4});
  tape.backward(loss.total);
  expect_near(loss.tokens, said, "token_losses");
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

TEST(Bert, HiddenRowsScoresLossAndGradientsAgreeWithHuggingFace) {
  expect_golden(DType::f64, 1e-6);
  expect_golden(DType::f32, 1e-5);
}

BertConfig tiny(BertConfig config) {
  config.target_vocabulary = 7;
  config.width = 8;
  config.feed_forward = 5;
  config.max_positions = 8;
  config.dropout = config.attention_dropout = 0.1f;
  return config;
}

TEST(Bert, EveryGradientIsThatOfDifferences) {
  for (const BertConfig& config : {tiny(small_bert_config()), tiny(modern_bert_config())}) {
    CpuContext context({.threads = 1});
    context.arena().poison();
    const auto model = make_bert(context, config, {.dtype = DType::f64, .gradients = true});
    const MaskedBatch batch =
        make_masked_batch(context, masked_texts(sentences_of({4, 2, 6}, 7, 1)), 7);
    expect_gradients(context, model->parameters(),
                     [&] { return loss_of(*model, batch, {.smoothing = 0.1, .chunk = 2}).total; });
  }
}

TEST(Bert, EveryGradientOfAClassifierIsThatOfDifferences) {
  BertConfig config = tiny(small_bert_config());
  config.labels = {"a", "b", "c"};
  CpuContext context({.threads = 1});
  context.arena().poison();
  const auto model = make_bert(context, config, {.dtype = DType::f64, .gradients = true});
  const TokenBatch texts = make_token_batch(context, sentences_of({4, 2, 6}, 7, 1), 7);
  expect_gradients(context, model->parameters(),
                   [&] { return label_loss_of(*model, texts).total; });
}

TEST(Bert, EachTokenSeesAllOfItsTextAndNothingElse) {
  CpuContext context({.threads = 2});
  context.arena().poison();
  const auto model = make_bert(context, small_bert_config());
  std::vector<Tokens> texts = sentences_of({9, 70, 5}, 37, 1);
  const auto scores = [&] { return scores_of(*model, make_token_batch(context, texts, 37)); };
  const std::vector<float> before = scores();
  texts[1][40] = (texts[1][40] + 1) % 37;
  const std::vector<float> after = scores();
  for (std::size_t row = 0; row < 84; ++row) {
    const auto at = [&](const std::vector<float>& all) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(37 * row);
      return std::vector<float>(begin, begin + 37);
    };
    const bool same_text = row >= 9 && row < 79;
    EXPECT_EQ(same_bits(at(before), at(after)), !same_text) << row;
  }
}

TEST(Bert, ATextGetsTheSameScoresInAnyBatch) {
  if (!kernels::rows_are_independent()) {
    GTEST_SKIP() << kernels::product_library()
                 << " does not keep a row's bits when others are added";
  }
  for (const int threads : {1, 2, 4}) {
    CpuContext context({.threads = threads});
    BertConfig wide = BertConfig::preset("bert-small", 1000);
    wide.layers = 1;
    for (const BertConfig& config : {small_bert_config(), modern_bert_config(), wide}) {
      const std::int64_t vocabulary = config.target_vocabulary;
      const auto model = make_bert(context, config);
      std::vector<std::int32_t> lengths;
      for (int b = 0; b < 24; ++b) lengths.push_back(1 + (b * 7) % 40);
      const std::vector<Tokens> texts = sentences_of(lengths, vocabulary, 1);
      const std::vector<float> together =
          scores_of(*model, make_token_batch(context, texts, vocabulary));
      auto at = together.begin();
      for (std::size_t b = 0; b < texts.size(); ++b) {
        const std::vector<float> alone = scores_of(
            *model, make_token_batch(context, std::span(texts).subspan(b, 1), vocabulary));
        const auto size = static_cast<std::ptrdiff_t>(alone.size());
        ASSERT_TRUE(same_bits(alone, std::vector<float>(at, at + size))) << "text " << b;
        at += size;
      }
    }
  }
}

TEST(Bert, OnlyTheMaskedRowsAreSaid) {
  CpuContext context({.threads = 2});
  const auto model = make_bert(context, small_bert_config());
  const std::vector<MaskedText> texts = masked_texts(sentences_of({9, 4, 20}, 37, 1));
  const MaskedBatch batch = make_masked_batch(context, texts, 37);
  EXPECT_EQ(batch.masked.lengths, (std::vector<std::int32_t>{3, 0, 7}));
  const std::vector<float> said =
      to_host<float>(model->scores(rows_to_say(*model, batch), batch.masked));
  const std::vector<float> all = scores_of(*model, batch.inputs);
  std::size_t at = 0, row = 0;
  for (const MaskedText& text : texts) {
    for (const std::int32_t position : text.positions) {
      const std::size_t from = (row + static_cast<std::size_t>(position)) * 37;
      for (std::size_t i = 0; i < 37; ++i) EXPECT_NEAR(said[at + i], all[from + i], 1e-5);
      at += 37;
    }
    row += text.inputs.size();
  }
  EXPECT_EQ(at, 37u * 10u);
}

TEST(Bert, TracedAttentionIsTheAttentionThatWasUsed) {
  CpuContext context({.threads = 2});
  const auto model = make_bert(context, small_bert_config());
  const TokenBatch texts = make_token_batch(context, sentences_of({70, 1, 9}, 37, 1), 37);
  const std::vector<float> before = scores_of(*model, texts);
  Trace trace;
  context.set_trace(&trace);
  const std::vector<float> after = scores_of(*model, texts);
  context.set_trace(nullptr);
  EXPECT_TRUE(same_bits(before, after)) << "looking must not change what is seen";
  for (int layer = 0; layer < 2; ++layer) {
    const auto find = [&](Tap tap) { return trace.find(tap, "encoder", layer, "self_attention"); };
    const TapRecord *weights = find(Tap::attention_weights), *values = find(Tap::value),
                    *mixed = find(Tap::attention_context);
    ASSERT_TRUE(weights != nullptr && values != nullptr && mixed != nullptr);
    std::size_t first = 0;
    for (std::size_t b = 0; b < 3; ++b) {
      const auto length = static_cast<std::size_t>(weights->lengths[b]);
      for (std::size_t head = 0; head < 2; ++head) {
        for (std::size_t i = 0; i < length; ++i) {
          const float* row =
              weights->values.data() + weights->begin[b] + (head * length + i) * length;
          double sum = 0, value = 0;
          for (std::size_t j = 0; j < length; ++j) {
            sum += row[j];
            value += double{row[j]} * values->values[(first + j) * 40 + head * 20];
          }
          EXPECT_NEAR(sum, 1, 1e-5);
          EXPECT_NEAR(value, mixed->values[(first + i) * 40 + head * 20], 1e-5);
        }
      }
      first += length;
    }
  }
  EXPECT_NE(trace.find(Tap::embedding, "encoder", -1), nullptr);
  EXPECT_NE(trace.find(Tap::stack_output, "encoder", -1), nullptr);
  EXPECT_NE(trace.find(Tap::logits, "encoder", -1), nullptr);
}

TEST(Bert, IsSavedAndLoaded) {
  const TemporaryFolder folder;
  CpuContext context({.threads = 2});
  for (BertConfig config : {small_bert_config(), modern_bert_config()}) {
    config.labels = {"no", "yes"};
    const auto model = make_bert(context, config);
    save_model(*model, folder.path());
    const std::unique_ptr<Model> loaded = load_model(folder.path(), context);
    EXPECT_EQ(loaded->config_json(), model->config_json());
    EXPECT_EQ(as_classifier(*loaded).labels(), config.labels);
    const TokenBatch texts = make_token_batch(context, sentences_of({7, 3}, 37, 1), 37);
    EXPECT_TRUE(
        same_bits(scores_of(*model, texts), scores_of(dynamic_cast<const Bert&>(*loaded), texts)));
  }
}

TEST(Bert, HasAsManyParametersAsHuggingFacesWithoutSegments) {
  EXPECT_EQ(Bert(BertConfig::preset("bert-base", 30522)).parameters().count(), 109512762);
}

TEST(Bert, SaysWhatItCanAndCannotDo) {
  const Bert plain(small_bert_config());
  EXPECT_EQ(error_of([&] { as_translation_model(plain); }),
            "a model of the family bert cannot translate. It can fill in: see 'nunchi fill "
            "--help'.");
  EXPECT_NE(error_of([&] { as_classifier(plain); }).find("has no labels yet"), std::string::npos);
  EXPECT_EQ(&as_masked_language_model(plain), &plain);
  BertConfig config = small_bert_config();
  config.labels = {"no", "yes"};
  const Bert classifier(config);
  EXPECT_EQ(&as_classifier(classifier), &classifier);
  const Transformer transformer(small_config());
  EXPECT_EQ(error_of([&] { as_masked_language_model(transformer); }),
            "a model of the family transformer cannot fill in. It can translate: see 'nunchi "
            "translate --help'.");
  EXPECT_NE(error_of([&] { as_classifier(transformer); }).find("cannot classify texts"),
            std::string::npos);
}

TEST(Bert, RefusesOptionsThatDoNotFit) {
  const auto message = [](const std::function<void(BertConfig&)>& change) {
    BertConfig config = small_bert_config();
    change(config);
    return error_of([&] { Bert{config}; });
  };
  EXPECT_NE(message([](BertConfig& c) {
              c.labels = {"b", "a", "b"};
            }).find("two labels 'b'"),
            std::string::npos);
  EXPECT_NE(message([](BertConfig& c) { c.max_positions = 2; }).find("max_positions"),
            std::string::npos);
  EXPECT_NE(message([](BertConfig& c) { c.heads = 3; }).find("heads"), std::string::npos);
  EXPECT_NE(error_of([] { BertConfig::preset("huge", 10); }).find("bert-base"), std::string::npos);
}

TEST(Bert, RefusesTextsThatItCannotRead) {
  CpuContext context;
  BertConfig config = small_bert_config();
  config.max_positions = 8;
  const auto model = make_bert(context, config);
  const auto read = [&](std::int32_t length, std::int64_t vocabulary) {
    return error_of([&] {
      model->hidden(make_token_batch(context, sentences_of({length}, 37, 1), vocabulary));
    });
  };
  EXPECT_NE(read(9, 37).find("8 positions"), std::string::npos);
  EXPECT_NE(read(5, 40).find("made for 40 text tokens"), std::string::npos);
  EXPECT_NE(error_of([&] {
              make_masked_batch(context, std::vector<MaskedText>{{{1, 2}, {2}, {5}}}, 37);
            }).find("none at 2"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              make_masked_batch(context, std::vector<MaskedText>{{{1, 2}, {1}, {}}}, 37);
            }).find("0 labels"),
            std::string::npos);
}

}  // namespace
}  // namespace nunchi::testing
