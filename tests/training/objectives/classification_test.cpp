// Classification: labels of the data and of the model, and learning to predict them.
#include "nunchi/training/objectives/classification.h"

#include "nunchi/autograd/tape.h"
#include "nunchi/training/config/train_config.h"
#include "nunchi/training/learner.h"
#include "nunchi/training/objectives/label_tokenizer.h"
#include "tests/files.h"
#include "tests/models/small_models.h"
#include "tests/training/piece_tokenizer.h"

namespace nunchi::testing {
namespace {

using Labels = std::vector<std::string>;

TEST(Labels, AreReadFromTheDataAndSorted) {
  const TemporaryFolder folder;
  write_text(folder / "a.tsv",
             "good film\tpos\nbad one \t neg\nfine\tpos\r\n\nno label\t\n\tneutral\n");
  write_text(folder / "b.txt", "so so\nmeh\n");
  write_text(folder / "b.label", "mixed\nneg\n");
  const std::vector<CorpusPart> parts = {
      {.tsv = folder / "a.tsv"}, {.source = folder / "b.txt", .target = folder / "b.label"}};
  EXPECT_EQ(labels_in(parts), (Labels{"mixed", "neg", "pos"}));
}

TEST(Labels, TooFewOrTooManyAreRejected) {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& text) {
    write_text(folder / "x.tsv", text);
    return error_of([&] { labels_in(std::vector<CorpusPart>{{.tsv = folder / "x.tsv"}}); });
  };
  EXPECT_NE(message("a\tpos\nb\tpos\n").find("all training data have the label 'pos'"),
            std::string::npos);
  EXPECT_NE(message("\n").find("no labels"), std::string::npos);
  EXPECT_NE(message("only a text\n").find("x.tsv:1: 1 column"), std::string::npos);
  std::string many;
  for (int i = 0; i <= 10'000; ++i) many += "text\tlabel" + std::to_string(i) + "\n";
  EXPECT_NE(message(many).find("x.tsv:10001: more than 10,000 labels"), std::string::npos);
}

TEST(Labels, ValidationLabelsMustOccurInTheTrainingData) {
  const CorpusPart part{.tsv = "x.tsv"};
  const std::vector<RawPair> pairs = {{.source = "a", .target = "pos"},
                                      {.source = "b", .target = "neg"},
                                      {.source = "c", .target = "neutral"}};
  check_labels(part, pairs, Labels{"neg", "neutral", "pos"});
  const std::string message = error_of([&] { check_labels(part, pairs, Labels{"neg", "pos"}); });
  EXPECT_NE(message.find("x.tsv:3: the label 'neutral' is neither in the training data nor"),
            std::string::npos)
      << message;
}

TEST(Labels, LabelsInTheConfigTakePrecedence) {
  BertConfig config = small_bert_config();
  const auto labels_with = [&](const Labels& labels) {
    return as_classifier_config(config)->with_labels(labels).as<BertConfig>().labels;
  };
  EXPECT_EQ(labels_with({"a", "b"}), (Labels{"a", "b"}));
  config.labels = {"b", "a", "c"};
  EXPECT_EQ(labels_with({"a", "b"}), (Labels{"b", "a", "c"}));
  EXPECT_NE(error_of([&] { labels_with({"a", "d"}); }).find("'d'"), std::string::npos);
  EXPECT_EQ(as_classifier_config(small_config()), nullptr);
  EXPECT_NE(
      error_of([] { kLabels.configure(small_config(), {}); }).find("cannot learn to classify"),
      std::string::npos);
}

class Classification : public ::testing::Test {
 protected:
  Classification() {
    BertConfig config = small_bert_config(tokenizers_.target().vocabulary());
    config.labels = {"even", "odd"};
    model_ = make_small<Bert>(context_, config, {.gradients = true});
  }

  // Texts that repeat one word; the label says whether the number of words is even or odd.
  HostBatch batch(int first, int count) const {
    HostBatch batch;
    for (int i = first; i < first + count; ++i) {
      const Tokens label = labels_.encode(i % 2 == 0 ? "odd" : "even");
      Tokens text(static_cast<std::size_t>(1 + i % 6), 5 + i % 3);
      text.push_back(2);
      std::get<std::vector<Tokens>>(batch.sources).push_back(text);
      batch.targets.push_back(label);
      batch.pairs.push_back(i);
    }
    return batch;
  }

  CpuContext context_{CpuOptions{.threads = 2}};
  Tokenizers tokenizers_{std::make_unique<PieceTokenizer>(Labels{"x", "y", "a", "b", "c"})};
  LabelTokenizer labels_{{"even", "odd"}};
  std::unique_ptr<Bert> model_;
  TrainingOptions options_{.label_smoothing = 0};
};

TEST_F(Classification, LearnsToPredictLabels) {
  const ClassificationObjective objective({*model_, context_, tokenizers_, options_});
  const ObjectiveLoss before = objective.loss(batch(0, 18), 0);
  EXPECT_EQ(before.target_tokens, 18);
  EXPECT_EQ(before.tokens_processed, 18 * 2 + 3 * (1 + 2 + 3 + 4 + 5 + 6));
  SingleProcess single_process;
  Learner learner(*model_, objective, {.adam = {.max_norm = 1}}, single_process);
  for (std::uint64_t step = 1; step <= 60; ++step) {
    learner.step(std::vector{batch(static_cast<int>(step % 3), 18)}, {.seed = 1, .step = step},
                 2e-3);
  }
  const ObjectiveLoss after = objective.loss(batch(0, 18), 0);
  EXPECT_EQ(after.correct, 18);
  EXPECT_LT(to_host<double>(after.total.value())[0], to_host<double>(before.total.value())[0] / 4);
}

TEST_F(Classification, RejectsUnknownLabelsAndModelsWithoutLabels) {
  const ClassificationObjective objective({*model_, context_, tokenizers_, options_});
  HostBatch bad = batch(0, 3);
  bad.targets[1] = labels_.encode("other");
  EXPECT_NE(error_of([&] { objective.loss(bad, 0); }).find("that the model does not have"),
            std::string::npos);
  const auto plain =
      make_small<Bert>(context_, small_bert_config(tokenizers_.target().vocabulary()));
  EXPECT_NE(error_of([&] {
              ClassificationObjective({*plain, context_, tokenizers_, options_});
            }).find("no labels"),
            std::string::npos);
}

TEST(LabelTokenizer, EncodesEachLabelAsOneToken) {
  const LabelTokenizer labels({"0", "1", "very  good", "가"});
  EXPECT_EQ(labels.vocabulary(), 5);
  EXPECT_EQ(labels.encode("0"), Tokens{0});
  EXPECT_EQ(labels.encode(" very  good\t\r"), Tokens{2});
  EXPECT_EQ(labels.encode("\xE1\x84\x80\xE1\x85\xA1"), Tokens{3}) << "the same label in jamo";
  EXPECT_EQ(labels.encode("2"), Tokens{4});
  EXPECT_EQ(labels.special().unknown, 4);
  EXPECT_EQ(labels.encode(" \t"), Tokens{});
  EXPECT_EQ(labels.decode(labels.encode("very  good")), "very  good");
  EXPECT_NE(labels.fingerprint(), LabelTokenizer({"1", "0", "very  good", "가"}).fingerprint());
  EXPECT_NE(error_of([] {
              LabelTokenizer({"a", "b", " a"});
            }).find("the labels 'a' and ' a' are the same"),
            std::string::npos);
}

}  // namespace
}  // namespace nunchi::testing
