#include "nunchi/models/family.h"

#include <gtest/gtest.h>

#include "nunchi/base/json_options.h"
#include "nunchi/models/families/bert_config.h"
#include "nunchi/models/families/t5.h"
#include "tests/errors.h"

namespace nunchi::testing {
namespace {

std::string options_of(const ModelConfig& model) {
  OptionWriter out;
  model->write_training_options(out);
  return to_json(out.tree());
}

TEST(Dropouts, WithDropoutSetsAllOfThemAndNothingElse) {
  for (const char* preset : {"tiny", "base", "gpt2", "bert-base", "t5-small", "rnn-base"}) {
    const ModelConfig model = model_preset(preset), changed = model->with_dropout(0.25);
    EXPECT_EQ(changed->family(), model->family());
    ASSERT_FALSE(changed->dropouts().empty()) << preset;
    for (const auto& [name, rate] : changed->dropouts()) EXPECT_EQ(rate, 0.25) << name;
    std::string expected = options_of(model);
    for (const auto& [name, rate] : model->dropouts()) {
      const std::size_t key = expected.find('"' + name + '"');
      const std::size_t value = expected.find(':', key) + 1,
                        end = expected.find_first_of(",}\n", key);
      expected.replace(value, end - value, " 0.25");
    }
    std::erase(expected, ' ');
    std::string found = options_of(changed);
    std::erase(found, ' ');
    EXPECT_EQ(found, expected) << preset;
  }
}

TEST(Dropouts, HaveTheNamesOfTheOptions) {
  const std::vector<FamilyConfig::DropoutOption> found = model_preset("gpt2")->dropouts();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[1].name, "attention_dropout");
  EXPECT_DOUBLE_EQ(found[1].rate, 0.1);
}

TEST(Dropouts, ARateMustBeAtLeastZeroAndBelowOne) {
  EXPECT_THROW(model_preset("gpt2")->with_dropout(1), Error);
  EXPECT_THROW(model_preset("gpt2")->with_dropout(-0.1), Error);
}

TEST(Families, T5IsATransformerWithAnotherNameAndOtherDefaults) {
  const ModelConfig t5 = read_model_config(R"({"family": "t5"})", "x");
  EXPECT_EQ(t5->family(), "t5");
  EXPECT_EQ(t5->to_json(), ModelConfig(t5_config())->to_json());
  EXPECT_EQ(t5.as<TransformerConfig>().norm, NormKind::rms);
  const ModelConfig transformer = TransformerConfig();
  EXPECT_EQ(transformer->family(), "transformer");
  const auto difference = function_difference(t5, transformer);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->key, "family");
  EXPECT_EQ(model_preset("t5-base")->family(), "t5");
}

TEST(Families, OptionsOfAnotherFamilyAreAnError) {
  const ModelConfig gpt = model_preset("gpt2");
  EXPECT_EQ(error_of([&] { gpt.as<BertConfig>(); }),
            "the model is of the family gpt, but options of another family were requested "
            "(internal error).");
  EXPECT_EQ(error_of([] { ModelConfig()->family(); }), "the model's family is unknown.");
}

TEST(Families, AFamilyWithoutASourceUsesTheTargetVocabulary) {
  const auto pair = model_preset("base")->with_input_sizes({7, 9}).as<TransformerConfig>();
  EXPECT_EQ(pair.source_vocabulary, 7);
  EXPECT_EQ(pair.target_vocabulary, 9);
  EXPECT_EQ(model_preset("bert-base")->with_input_sizes({7, 9}).as<BertConfig>().target_vocabulary,
            9);
}

TEST(Families, OnlyABertHasLabels) {
  for (const char* preset : {"base", "gpt2", "t5-small", "rnn-base"}) {
    EXPECT_EQ(as_classifier_config(model_preset(preset)), nullptr) << preset;
  }
  ASSERT_NE(as_classifier_config(model_preset("bert-base")), nullptr);
  EXPECT_TRUE(as_classifier_config(model_preset("bert-base"))->labels().empty());
}

}  // namespace
}  // namespace nunchi::testing
