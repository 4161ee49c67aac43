#include "nunchi/models/dropouts.h"

#include <gtest/gtest.h>

namespace nunchi::testing {
namespace {

std::string options_of(const ModelConfig& model) {
  OptionWriter out;
  model->write_training_options(out);
  return to_json(out.tree());
}

TEST(Dropouts, AreAllSetAndNothingElse) {
  for (const char* preset : {"tiny", "base", "gpt2", "bert-base", "t5-small", "rnn-base"}) {
    const ModelConfig model = model_preset(preset), changed = with_dropout(model, 0.25);
    EXPECT_EQ(changed->family(), model->family());
    ASSERT_FALSE(dropouts_of(changed).empty()) << preset;
    for (const auto& [name, rate] : dropouts_of(changed)) EXPECT_EQ(rate, 0.25) << name;
    std::string expected = options_of(model);
    for (const auto& [name, rate] : dropouts_of(model)) {
      const std::size_t at = expected.find('"' + name + '"');
      const std::size_t value = expected.find(':', at) + 1,
                        end = expected.find_first_of(",}\n", at);
      expected.replace(value, end - value, " 0.25");
    }
    std::erase(expected, ' ');
    std::string found = options_of(changed);
    std::erase(found, ' ');
    EXPECT_EQ(found, expected) << preset;
  }
}

TEST(Dropouts, HaveTheNamesOfTheOptions) {
  const std::vector<DropoutOption> found = dropouts_of(model_preset("gpt2"));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[1].name, "attention_dropout");
  EXPECT_DOUBLE_EQ(found[1].rate, 0.1);
}

TEST(Dropouts, ARateIsBelowOne) {
  EXPECT_THROW(with_dropout(model_preset("gpt2"), 1), Error);
  EXPECT_THROW(with_dropout(model_preset("gpt2"), -0.1), Error);
}

}  // namespace
}  // namespace nunchi::testing
