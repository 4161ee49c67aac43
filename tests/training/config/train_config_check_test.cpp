// The training config: options that do not fit together or have no effect are rejected.
#include <gtest/gtest.h>

#include "nunchi/models/families/gpt_config.h"
#include "nunchi/models/families/transformer_config.h"
#include "tests/training/config/config_texts.h"

namespace nunchi::testing {
namespace {

TEST(TrainConfig, PairsComeFromTwoFilesOrOneTsv) {
  for (const char* part : {"{source: a}", "{target: a}", "{}", "{tsv: a, source: b}",
                           "{tsv: a, source: b, target: c}", "{weight: 2}"}) {
    for (const std::string key : {"data.train", "data.validation"}) {
      if (key == "data.validation" && std::string(part) == "{weight: 2}") continue;
      EXPECT_NE(minimal_error({key + "=" + part})
                    .find("'" + key + "' must name either 'source' and 'target' or one 'tsv'."),
                std::string::npos)
          << key << part << minimal_error({key + "=" + part});
    }
  }
  EXPECT_EQ(minimal_error({"data.train={tsv: a}"}), "no error");
}

// The file alone is valid, so the error must name the assignment.
TEST(TrainConfig, ErrorsNameTheAssignmentThatCausesThem) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"model.kv_heads=3", "'model.kv_heads' is 3, but 8 heads"},
      {"output=", "'output' must be a text, but the value is missing"},
      {"model.position=", "'model.position' must be one of"},
      {"model={family: gpt}", "'data.train' must name a 'text' and nothing else"},
      {"model.family=gpt", "'data.train' must name a 'text' and nothing else"},
      {"model={family: transformer, position: rotary, head_width: 7}",
       "'model.position' is rotary, which rotates pairs"},
      {"model={family: transformer, position: relative, relative_max_distance: 8}",
       "'model.relative_max_distance' contradicts 'relative_buckets'"},
      {"model={family: bert, labels: [swapped, swapped]}", "'model.labels' names 'swapped' twice"},
      {"training.objective=span_corruption", "'tokenizer.symbols' must contain <extra_id_0>"},
  };
  for (const auto& [assignment, message] : wrong) {
    EXPECT_EQ(minimal_error({assignment}).rfind("--set " + assignment + ": " + message, 0), 0u)
        << minimal_error({assignment});
    EXPECT_THROW(config_of(kMinimal, {assignment}), UsageError);
  }
  // An assignment can make a key of the file ineffective.
  const std::string text = std::string(kMinimal) + "generation: {beam_size: 3}\n";
  EXPECT_EQ(
      config_error(text, {"model.family=bert", "data.train={text: a}", "data.validation={text: b}"})
          .rfind("--set model.family=bert: 'generation.beam_size' has no effect", 0),
      0u);
}

TEST(TrainConfig, ChecksTheScheduleAndTheOptimizer) {
  EXPECT_EQ(minimal_error({"training.schedule={kind: paper, warmup: 0}"}),
            "--set training.schedule={kind: paper, warmup: 0}: 'training.schedule.warmup' must be "
            "at least 1 for the schedule 'paper'.");
  for (const std::string kind : {"cosine", "linear"}) {
    const std::string schedule = "training.schedule={kind: " + kind + ", warmup: 10}";
    EXPECT_EQ(minimal_error({schedule})
                  .rfind("--set " + schedule + ": 'training.max_steps' must be above", 0),
              0u);
    EXPECT_EQ(minimal_error({schedule, "training.max_steps=11"}), "no error");
  }
  EXPECT_EQ(minimal_error({"training.schedule={kind: constant, warmup: 10}"}), "no error");
  EXPECT_NE(minimal_error({"training.schedule.final=1"}).find("'training.schedule.final' is above"),
            std::string::npos);
  EXPECT_NE(minimal_error({"training.schedule.learning_rate=0"}).find("nothing would be learned"),
            std::string::npos);
  EXPECT_NE(minimal_error({"training.optimizer.weight_decay=0.1"}).find("'kind: adamw'"),
            std::string::npos);
  EXPECT_EQ(minimal_error({"training.optimizer={kind: adamw, weight_decay: 0.1}"}), "no error");
}

TEST(TrainConfig, PatienceNeedsValidationAndAveragingNeedsCheckpoints) {
  EXPECT_EQ(minimal_error({"checkpoints.average=6"}),
            "--set checkpoints.average=6: 'checkpoints.average' is larger than "
            "'checkpoints.keep_best'.");
  const std::string without_validation =
      "output: run\nmodel: {family: transformer}\ndata: {train: {tsv: a}}\n"
      "training: {max_steps: 10}\n";
  EXPECT_EQ(config_error(without_validation), "no error");
  EXPECT_NE(config_error(without_validation, {"checkpoints.keep_last=2"})
                .find("is larger than 'checkpoints.keep_last'"),
            std::string::npos);
  EXPECT_NE(
      config_error(without_validation, {"validation.patience=2"}).find("needs 'data.validation'"),
      std::string::npos);
  EXPECT_NE(
      minimal_error({"validation.patience=2", "validation.every=0"}).find("'validation.every'"),
      std::string::npos);
}

TEST(TrainConfig, TokenizersMustFitTheModel) {
  EXPECT_EQ(minimal_error({"tokenizer.source=a.spm"}), "no error");
  EXPECT_NE(minimal_error({"tokenizer.target=a.spm"}).find("has no effect"), std::string::npos);
  EXPECT_NE(minimal_error({"tokenizer.shared=false"})
                .find("'tokenizer.shared' is false, but 'model.tied_embeddings' is 'all'"),
            std::string::npos);
  const std::vector<std::string> separate_tokenizers = {"tokenizer.shared=false",
                                                        "model.tied_embeddings=target"};
  EXPECT_EQ(minimal_error(separate_tokenizers), "no error");
  EXPECT_NE(minimal_error({separate_tokenizers[0], separate_tokenizers[1], "tokenizer.source=a"})
                .find("'tokenizer.target' is missing"),
            std::string::npos);
  EXPECT_NE(minimal_error({separate_tokenizers[0], separate_tokenizers[1], "tokenizer.target=a"})
                .find("'tokenizer.source' is missing"),
            std::string::npos);
  EXPECT_EQ(minimal_error({separate_tokenizers[0], separate_tokenizers[1], "tokenizer.source=a",
                           "tokenizer.target=b"}),
            "no error");
}

TEST(TrainConfig, MaxPositionsMustCoverTheLongestSentence) {
  EXPECT_EQ(minimal_error({"model.position=learned"}), "no error");
  const auto error_with_255_positions = [](const std::vector<std::string>& lengths) {
    std::vector<std::string> assignments = {"model.position=learned", "model.max_positions=255"};
    assignments.insert(assignments.end(), lengths.begin(), lengths.end());
    return minimal_error(assignments);
  };
  EXPECT_NE(error_with_255_positions({"data.max_length=256"})
                .find("'model.max_positions' is 255, but sentences have up to 256 tokens"),
            std::string::npos);
  EXPECT_NE(error_with_255_positions({"generation.max_length=256"})
                .find("up to 256 tokens are generated"),
            std::string::npos);
  // Lengths that are not set are lowered to max_positions.
  EXPECT_EQ(error_with_255_positions({}), "no error");
  const TrainConfig config =
      config_of(kMinimal, {"model.position=learned", "model.max_positions=100"});
  EXPECT_EQ(config.data.limits.max_length, 100);
  EXPECT_EQ(config.generation.max_length, 100);
  EXPECT_NE(minimal_error({"model.position=learned", "data.max_length=1025"}).find("up to 1025"),
            std::string::npos);
}

TEST(TrainConfig, ObjectivesRejectTheWrongKindOfData) {
  const auto says = [](const std::string& message, const std::string& words) {
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  says(minimal_error({"data.train={text: a}"}),
       "'data.train' names a 'text', but the objective translation learns from pairs");
  says(config_error(kMinimalText, {"data.train={source: a, target: b}"}),
       "'data.train' must name a 'text' and nothing else for the objective causal");
  says(config_error(kMinimalText, {"data.validation={text: a, tsv: b}"}), "nothing else");
  says(config_error(kMinimalText, {"data.train={text: a, first_line: 5, last_line: 4}"}),
       "'last_line' before its 'first_line'");
  says(config_error(kMinimalText, {"data.cut=lines"}),
       "'data.cut' must be 'windows' for the objective causal");
  says(config_error(kMinimalText, {"data.window=0"}),
       "'data.window' must be a whole number from 1");
  says(config_error(kMinimalText, {"data.window=2000"}),
       "'model.max_positions' is 1024, but a window has 2000 tokens; see 'data.window'");
  EXPECT_EQ(config_error(kMinimalText, {"data.window=2000", "model.position=sinusoidal"}),
            "no error");
  says(config_error(kMinimalText, {"validation.metric=bleu"}),
       "'validation.metric' must be 'loss' for the objective causal, which does not translate");
  says(config_error(kMinimalText, {"tokenizer.shared=false"}),
       "'tokenizer.shared' is false, but a gpt reads the tokens that it writes");
  says(config_error(kMinimalText, {"model.vocabulary=10"}), "the tokenizers decide it");
  says(config_error(kMinimalText, {"model.encoder_layers=2"}),
       "unknown key 'model.encoder_layers'");
  says(config_error(kMinimalText, {"model.preset=base"}),
       "'model.preset' must be one of gpt2 | small");
  says(config_error("output: x\nmodel: {family: gpt}\n"),
       "'data.train' is missing; it names the text");
}

// The longest input of a model with learned positions, for each family, fills exactly
// max_positions.
TEST(TrainConfig, SpecialTokensCountAsPositions) {
  const auto error = [](const std::string& family, const std::string& training,
                        const std::vector<std::string>& assignments) {
    const bool pairs = training.find("classification") != std::string::npos;
    return config_error("output: run\nmodel: {family: " + family +
                            ", position: learned, max_positions: 128}\ndata: {train: {" +
                            (pairs ? "tsv: a.tsv" : "text: a.txt") +
                            "}}\ntraining: {max_steps: 10" + training + "}\n",
                        assignments);
  };
  for (const std::string training : {"", ", objective: classification"}) {
    EXPECT_EQ(error("bert", training, {}), "no error");
    EXPECT_EQ(error("bert", training, {"data.max_length=127"}), "no error");
    EXPECT_NE(error("bert", training, {"data.max_length=128"})
                  .find("'model.max_positions' is 128, but sentences have up to 129 tokens, <s> "
                        "and </s> included; see 'data.max_length', which is 128"),
              std::string::npos);
  }
  EXPECT_EQ(error("gpt", "", {}), "no error");
  EXPECT_EQ(error("gpt", "", {"data.window=128"}), "no error");
  EXPECT_NE(error("gpt", "", {"data.window=129"}).find("a window has 129 tokens"),
            std::string::npos);
  // The target has a sentinel for each removed span: 64 of 127 tokens, each a span of its own, make
  // 128 tokens and <s>.
  const std::vector<std::string> symbol = {"tokenizer.symbols=[<extra_id_0>]"};
  const std::string corruption = ", objective: span_corruption";
  EXPECT_EQ(error("t5", corruption, symbol), "no error");
  EXPECT_EQ(error("t5", corruption, {symbol[0], "data.max_length=128"}), "no error");
  EXPECT_NE(error("t5", corruption + ", span_corruption: {noise: 0.5, mean_span: 1}",
                  {symbol[0], "data.max_length=128"})
                .find("up to 129 tokens"),
            std::string::npos);
}

TEST(TrainConfig, UnsupportedObjectivesAreRejected) {
  const auto error = [](const std::string& family, const std::string& objective,
                        const std::vector<std::string>& assignments = {}) {
    return config_error(
        "output: run\nmodel: {family: " + family +
            "}\ndata: {train: {text: a.txt}}\ntraining: {max_steps: 10, objective: " + objective +
            "}\n",
        assignments);
  };
  EXPECT_EQ(error("gpt", "masked"),
            "a.yaml:4: 'training.objective' is masked, but the family gpt supports only causal.");
  EXPECT_NE(
      error("bert", "translation").find("the family bert supports only masked or classification"),
      std::string::npos);
  for (const char* family : {"transformer", "t5", "rnn"}) {
    EXPECT_NE(error(family, "causal").find("supports only translation or span_corruption"),
              std::string::npos);
  }
  EXPECT_NE(error("t5", "span_corruption").find("'tokenizer.symbols' must contain <extra_id_0>"),
            std::string::npos);
  EXPECT_EQ(error("t5", "span_corruption", {"tokenizer.symbols=[<extra_id_0>]"}), "no error");
  EXPECT_EQ(error("t5", "span_corruption", {"tokenizer.source=a.spm"}), "no error");
  EXPECT_NE(error("t5", "span_corruption", {"tokenizer.shared=false"})
                .find("'tokenizer.shared' must be true"),
            std::string::npos);
  EXPECT_NE(error("bert", "masked", {"tokenizer.kind=characters"})
                .find("'tokenizer.kind' must be bpe or unigram for the objective masked: it needs "
                      "the symbol [MASK]"),
            std::string::npos);
}

TEST(TrainConfig, OptionsWithoutEffectAreRejected) {
  for (const auto& [assignment, reason] : std::vector<std::pair<std::string, std::string>>{
           {"training.mask_share=0.2", "'training.objective' is translation"},
           {"training.whole_words=true", "'training.objective' is translation"},
           {"training.span_corruption={noise: 0.2}", "'training.objective' is translation"},
           {"data.window=64", "the data are not cut into windows"},
           {"training.schedule.factor=2", "only the schedule 'paper'"},
           {"model.max_positions=500",
            "it applies to learned positions only, but 'position' is sinusoidal"},
           {"model.rotary_base=500",
            "it applies to rotary positions only, but 'position' is sinusoidal"},
           {"model.relative_max_distance=9",
            "it applies to relative positions only, but 'position' is sinusoidal"},
           {"data.train={source: a, target: b, source_column: 2}", "only a 'tsv' has columns"}}) {
    const std::string error = minimal_error({assignment});
    EXPECT_TRUE(error.starts_with("--set " + assignment + ": '")) << error;
    EXPECT_NE(error.find("no effect: " + reason), std::string::npos) << error;
  }
  const auto says = [](const std::string& message, const std::string& words) {
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  says(minimal_error({"training.schedule={kind: paper, warmup: 9, learning_rate: 0.1}"}),
       "'training.schedule.learning_rate' has no effect");
  says(minimal_error({"training.schedule={kind: constant, final: 1e-5}"}),
       "'training.schedule.final' has no effect: a constant schedule has no final rate");
  says(minimal_error({"validation={metric: loss, lowercase: true}"}), "nothing is translated");
  says(minimal_error({"validation={metric: loss, beam_size: 3}"}), "nothing is translated");
  says(minimal_error({"tokenizer={kind: bytes, vocabulary: 300}"}), "always has all 256 bytes");
  says(minimal_error({"tokenizer={kind: characters, split_digits: true}"}),
       "'tokenizer.kind' is neither bpe nor unigram");
  EXPECT_EQ(minimal_error({"tokenizer={kind: characters, vocabulary: 300}"}), "no error");
  says(config_error(kMinimalText, {"data.max_length=9"}), "'data.max_length' has no effect");
  says(config_error(kMinimalText, {"data.max_ratio=2"}),
       "only pairs of source and target have a length ratio");
  const std::string without_validation =
      "output: run\nmodel: {family: transformer}\ndata: {train: {tsv: a}}\n"
      "training: {max_steps: 10}\n";
  says(config_error(without_validation, {"validation.metric=chrf"}),
       "there is no 'data.validation'");
  says(config_error(without_validation, {"checkpoints.keep_best=7"}),
       "there is no 'data.validation'");
  // Options for learning a tokenizer are allowed beside a tokenizer file, which takes precedence.
  EXPECT_EQ(minimal_error({"tokenizer.source=a.spm", "tokenizer.vocabulary=9000"}), "no error");
  const TrainConfig rotary =
      config_of(kMinimal, {"model.position=rotary", "model.rotary_base=5e5"});
  EXPECT_EQ(rotary.model.as<TransformerConfig>().rotary_base, 5e5);
}

TEST(TrainConfig, MaxPositionsWithoutEffectMayRepeatThePresetsValue) {
  const std::vector<std::string> small = {"model.preset=small", "model.position=rotary"};
  const std::string written = to_yaml(config_of(kMinimalText, small));
  EXPECT_EQ(written.find("max_positions"), std::string::npos) << written;
  EXPECT_EQ(to_yaml(config_of(written)), written);
  const auto with_positions = [&](const char* number) {
    return config_error(kMinimalText,
                        {small[0], small[1], std::string("model.max_positions=") + number});
  };
  EXPECT_EQ(with_positions("256"), "no error");
  EXPECT_NE(with_positions("1024").find("'model.max_positions' has no effect"), std::string::npos);
}

TEST(TrainConfig, LabelsNeedTheObjectiveClassification) {
  const std::string bert =
      "output: run\nmodel: {family: bert, labels: [a, b]}\ntraining: {max_steps: 10}\n";
  EXPECT_EQ(
      config_error(bert + "data: {train: {text: a.txt}}\n"),
      "a.yaml:2: 'model.labels' has no effect: 'training.objective' is masked, which does not "
      "use labels.");
  EXPECT_EQ(
      config_error(bert + "data: {train: {tsv: a.tsv}}\n", {"training.objective=classification"}),
      "no error");
}

TEST(TrainConfig, CausalModelsMayHaveTwoRelativeBuckets) {
  const std::vector<std::string> two = {"model.position=relative", "model.relative_buckets=2"};
  EXPECT_EQ(config_error(kMinimalText, two), "no error");
  EXPECT_NE(minimal_error(two).find("must be at least 4"), std::string::npos);
}

}  // namespace
}  // namespace nunchi::testing
