// The training config: what does not fit together, and what has no effect.
#include <gtest/gtest.h>

#include "nunchi/models/families/gpt_config.h"
#include "nunchi/models/families/transformer_config.h"
#include "tests/training/config/config_texts.h"

namespace nunchi::testing {
namespace {

TEST(TrainConfig, PairsAreTwoFilesOrOne) {
  for (const char* part : {"{source: a}", "{target: a}", "{}", "{tsv: a, source: b}",
                           "{tsv: a, source: b, target: c}", "{weight: 2}"}) {
    for (const std::string key : {"data.train", "data.validation"}) {
      if (key == "data.validation" && std::string(part) == "{weight: 2}") continue;
      EXPECT_NE(error_with({key + "=" + part})
                    .find("'" + key + "' names either 'source' and 'target' or one 'tsv'."),
                std::string::npos)
          << key << part << error_with({key + "=" + part});
    }
  }
  EXPECT_EQ(error_with({"data.train={tsv: a}"}), "no error");
}

// Whatever the file says, it was right before.
TEST(TrainConfig, WhatIsSetOnTheCommandLineIsToBlame) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"model.kv_heads=3", "'model.kv_heads' is 3, but 8 heads"},
      {"output=", "'output' must be a text, but the value is missing"},
      {"model.position=", "'model.position' must be one of"},
      {"model={family: gpt}", "'data.train' names a 'text' and nothing else"},
      {"model.family=gpt", "'data.train' names a 'text' and nothing else"},
      {"model={family: transformer, position: rotary, head_width: 7}",
       "'model.position' is rotary, which rotates pairs"},
      {"model={family: transformer, position: relative, relative_max_distance: 8}",
       "'model.relative_max_distance' and 'relative_buckets' do not fit"},
      {"model={family: bert, labels: [swapped, swapped]}", "'model.labels' names 'swapped' twice"},
      {"training.objective=span_corruption", "'tokenizer.symbols' has to name"},
  };
  for (const auto& [assignment, what] : wrong) {
    EXPECT_EQ(error_with({assignment}).rfind("--set " + assignment + ": " + what, 0), 0u)
        << error_with({assignment});
    EXPECT_THROW(config_of(kSmallest, {assignment}), UsageError);
  }
  // A key of the file that has lost its effect by what was set.
  const std::string text = std::string(kSmallest) + "generation: {beam_size: 3}\n";
  EXPECT_EQ(
      config_error(text, {"model.family=bert", "data.train={text: a}", "data.validation={text: b}"})
          .rfind("--set model.family=bert: 'generation.beam_size' has no effect", 0),
      0u);
}

TEST(TrainConfig, SchedulesFitTheRun) {
  EXPECT_EQ(error_with({"training.schedule={kind: paper, warmup: 0}"}),
            "--set training.schedule={kind: paper, warmup: 0}: 'training.schedule.warmup' is at "
            "least 1 for the paper's schedule.");
  for (const std::string kind : {"cosine", "linear"}) {
    const std::string schedule = "training.schedule={kind: " + kind + ", warmup: 10}";
    EXPECT_EQ(
        error_with({schedule}).rfind("--set " + schedule + ": 'training.max_steps' is where", 0),
        0u);
    EXPECT_EQ(error_with({schedule, "training.max_steps=11"}), "no error");
  }
  EXPECT_EQ(error_with({"training.schedule={kind: constant, warmup: 10}"}), "no error");
  EXPECT_NE(error_with({"training.schedule.final=1"}).find("'training.schedule.final' is above"),
            std::string::npos);
  EXPECT_NE(error_with({"training.schedule.learning_rate=0"}).find("nothing would be learned"),
            std::string::npos);
  EXPECT_NE(error_with({"training.optimizer.weight_decay=0.1"}).find("'kind: adamw'"),
            std::string::npos);
  EXPECT_EQ(error_with({"training.optimizer={kind: adamw, weight_decay: 0.1}"}), "no error");
}

TEST(TrainConfig, AveragesAndPatienceNeedSomethingToGoBy) {
  EXPECT_EQ(error_with({"checkpoints.average=6"}),
            "--set checkpoints.average=6: 'checkpoints.average' is more than "
            "'checkpoints.keep_best' keeps.");
  const std::string blind =
      "output: run\nmodel: {family: transformer}\ndata: {train: {tsv: a}}\n"
      "training: {max_steps: 10}\n";
  EXPECT_EQ(config_error(blind), "no error");
  EXPECT_NE(config_error(blind, {"checkpoints.keep_last=2"}).find("'checkpoints.keep_last' keeps"),
            std::string::npos);
  EXPECT_NE(config_error(blind, {"validation.patience=2"}).find("needs 'data.validation'"),
            std::string::npos);
  EXPECT_NE(error_with({"validation.patience=2", "validation.every=0"}).find("'validation.every'"),
            std::string::npos);
}

TEST(TrainConfig, TokenizersFitTheModel) {
  EXPECT_EQ(error_with({"tokenizer.source=a.spm"}), "no error");
  EXPECT_NE(error_with({"tokenizer.target=a.spm"}).find("has no effect"), std::string::npos);
  EXPECT_NE(error_with({"tokenizer.shared=false"})
                .find("'tokenizer.shared' is false, but 'model.tied_embeddings' is 'all'"),
            std::string::npos);
  const std::vector<std::string> apart = {"tokenizer.shared=false", "model.tied_embeddings=target"};
  EXPECT_EQ(error_with(apart), "no error");
  EXPECT_NE(
      error_with({apart[0], apart[1], "tokenizer.source=a"}).find("'tokenizer.target' is missing"),
      std::string::npos);
  EXPECT_NE(
      error_with({apart[0], apart[1], "tokenizer.target=a"}).find("'tokenizer.source' is missing"),
      std::string::npos);
  EXPECT_EQ(error_with({apart[0], apart[1], "tokenizer.source=a", "tokenizer.target=b"}),
            "no error");
}

TEST(TrainConfig, LearnedPositionsHoldTheLongestSentence) {
  EXPECT_EQ(error_with({"model.position=learned"}), "no error");
  const auto short_of = [](const std::vector<std::string>& lengths) {
    std::vector<std::string> all = {"model.position=learned", "model.max_positions=255"};
    all.insert(all.end(), lengths.begin(), lengths.end());
    return error_with(all);
  };
  EXPECT_NE(short_of({"data.max_length=256"})
                .find("'model.max_positions' is 255, but sentences have up to 256 tokens"),
            std::string::npos);
  EXPECT_NE(short_of({"generation.max_length=256"}).find("up to 256 tokens are generated"),
            std::string::npos);
  // What nobody has said fits.
  EXPECT_EQ(short_of({}), "no error");
  const TrainConfig config =
      config_of(kSmallest, {"model.position=learned", "model.max_positions=100"});
  EXPECT_EQ(config.data.limits.max_length, 100);
  EXPECT_EQ(config.generation.max_length, 100);
  EXPECT_NE(error_with({"model.position=learned", "data.max_length=1025"}).find("up to 1025"),
            std::string::npos);
}

TEST(TrainConfig, TextsAndPairsAreNotConfused) {
  const auto says = [](const std::string& message, const std::string& words) {
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  says(error_with({"data.train={text: a}"}),
       "'data.train' names a 'text', but the objective translation learns from pairs");
  says(config_error(kText, {"data.train={source: a, target: b}"}),
       "'data.train' names a 'text' and nothing else for the objective causal");
  says(config_error(kText, {"data.validation={text: a, tsv: b}"}), "nothing else");
  says(config_error(kText, {"data.train={text: a, first_line: 5, last_line: 4}"}),
       "'last_line' before its 'first_line'");
  says(config_error(kText, {"data.cut=lines"}), "'data.cut' is 'windows' for the objective causal");
  says(config_error(kText, {"data.window=0"}), "'data.window' must be a whole number from 1");
  says(config_error(kText, {"data.window=2000"}),
       "'model.max_positions' is 1024, but a window has 2000 tokens; see 'data.window'");
  EXPECT_EQ(config_error(kText, {"data.window=2000", "model.position=sinusoidal"}), "no error");
  says(config_error(kText, {"validation.metric=bleu"}),
       "'validation.metric' is 'loss' for the objective causal: nothing is translated");
  says(config_error(kText, {"tokenizer.shared=false"}),
       "'tokenizer.shared' is false, but a gpt reads the tokens that it writes");
  says(config_error(kText, {"model.vocabulary=10"}), "the tokenizers decide it");
  says(config_error(kText, {"model.encoder_layers=2"}), "unknown key 'model.encoder_layers'");
  says(config_error(kText, {"model.preset=base"}), "'model.preset' must be one of gpt2 | small");
  says(config_error("output: x\nmodel: {family: gpt}\n"),
       "'data.train' is missing; it names the text");
}

// What a model of learned positions can be asked, family by family: up to the last position, and
// not one further.
TEST(TrainConfig, SpecialTokensCountAsPositions) {
  const auto error = [](const std::string& family, const std::string& rest,
                        const std::vector<std::string>& sets) {
    const bool pairs = rest.find("classification") != std::string::npos;
    return config_error("output: run\nmodel: {family: " + family +
                            ", position: learned, max_positions: 128}\ndata: {train: {" +
                            (pairs ? "tsv: a.tsv" : "text: a.txt") +
                            "}}\ntraining: {max_steps: 10" + rest + "}\n",
                        sets);
  };
  for (const std::string rest : {"", ", objective: classification"}) {
    EXPECT_EQ(error("bert", rest, {}), "no error");
    EXPECT_EQ(error("bert", rest, {"data.max_length=127"}), "no error");
    EXPECT_NE(error("bert", rest, {"data.max_length=128"})
                  .find("'model.max_positions' is 128, but sentences have up to 129 tokens, <s> "
                        "and </s> included; see 'data.max_length', which is 128"),
              std::string::npos);
  }
  EXPECT_EQ(error("gpt", "", {}), "no error");
  EXPECT_EQ(error("gpt", "", {"data.window=128"}), "no error");
  EXPECT_NE(error("gpt", "", {"data.window=129"}).find("a window has 129 tokens"),
            std::string::npos);
  // Sentinels come on top of what is taken out: of 127 tokens 64 in as many stretches.
  const std::vector<std::string> symbol = {"tokenizer.symbols=[<extra_id_0>]"};
  const std::string corruption = ", objective: span_corruption";
  EXPECT_EQ(error("t5", corruption, symbol), "no error");
  EXPECT_EQ(error("t5", corruption, {symbol[0], "data.max_length=128"}), "no error");
  EXPECT_NE(error("t5", corruption + ", span_corruption: {noise: 0.5, mean_span: 1}",
                  {symbol[0], "data.max_length=128"})
                .find("up to 129 tokens"),
            std::string::npos);
}

TEST(TrainConfig, WhatAFamilyCannotLearnIsSaidAtOnce) {
  const auto error = [](const std::string& family, const std::string& objective,
                        const std::vector<std::string>& sets = {}) {
    return config_error(
        "output: run\nmodel: {family: " + family +
            "}\ndata: {train: {text: a.txt}}\ntraining: {max_steps: 10, objective: " + objective +
            "}\n",
        sets);
  };
  EXPECT_EQ(error("gpt", "masked"),
            "a.yaml:4: 'training.objective' is masked, but a model of the family gpt is trained "
            "for causal.");
  EXPECT_NE(error("bert", "translation")
                .find("the family bert is trained for masked or "
                      "classification"),
            std::string::npos);
  for (const char* family : {"transformer", "t5", "rnn"}) {
    EXPECT_NE(error(family, "causal").find("is trained for translation or span_corruption"),
              std::string::npos);
  }
  EXPECT_NE(error("t5", "span_corruption").find("'tokenizer.symbols' has to name"),
            std::string::npos);
  EXPECT_EQ(error("t5", "span_corruption", {"tokenizer.symbols=[<extra_id_0>]"}), "no error");
  EXPECT_EQ(error("t5", "span_corruption", {"tokenizer.source=a.spm"}), "no error");
  EXPECT_NE(error("t5", "span_corruption", {"tokenizer.shared=false"})
                .find("'tokenizer.shared' is "
                      "true"),
            std::string::npos);
  EXPECT_NE(error("bert", "masked", {"tokenizer.kind=characters"})
                .find("'tokenizer.kind' is bpe or unigram for the objective masked: it needs the "
                      "symbol [MASK]"),
            std::string::npos);
}

TEST(TrainConfig, WhatHasNoEffectIsAMistake) {
  for (const auto& [set, why] : std::vector<std::pair<std::string, std::string>>{
           {"training.mask_share=0.2", "'training.objective' is translation"},
           {"training.whole_words=true", "'training.objective' is translation"},
           {"training.span_corruption={noise: 0.2}", "'training.objective' is translation"},
           {"data.window=64", "nothing is cut into windows"},
           {"training.schedule.factor=2", "only the paper's schedule"},
           {"model.max_positions=500",
            "it applies to learned positions only, but 'position' is sinusoidal"},
           {"model.rotary_base=500",
            "it applies to rotary positions only, but 'position' is sinusoidal"},
           {"model.relative_max_distance=9",
            "it applies to relative positions only, but 'position' is sinusoidal"},
           {"data.train={source: a, target: b, source_column: 2}", "only a 'tsv' has some"}}) {
    const std::string error = error_with({set});
    EXPECT_TRUE(error.starts_with("--set " + set + ": '")) << error;
    EXPECT_NE(error.find("no effect: " + why), std::string::npos) << error;
  }
  const auto says = [](const std::string& message, const std::string& words) {
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  says(error_with({"training.schedule={kind: paper, warmup: 9, learning_rate: 0.1}"}),
       "'training.schedule.learning_rate' has no effect");
  says(error_with({"training.schedule={kind: constant, final: 1e-5}"}),
       "'training.schedule.final' has no effect: a constant rate does not change");
  says(error_with({"validation={metric: loss, lowercase: true}"}), "nothing is translated");
  says(error_with({"validation={metric: loss, beam_size: 3}"}), "nothing is translated");
  says(error_with({"tokenizer={kind: bytes, vocabulary: 300}"}), "there are 256 bytes");
  says(error_with({"tokenizer={kind: characters, split_digits: true}"}),
       "'tokenizer.kind' is neither bpe nor unigram");
  EXPECT_EQ(error_with({"tokenizer={kind: characters, vocabulary: 300}"}), "no error");
  says(config_error(kText, {"data.max_length=9"}), "'data.max_length' has no effect");
  says(config_error(kText, {"data.max_ratio=2"}), "a text has no other side");
  const std::string blind =
      "output: run\nmodel: {family: transformer}\ndata: {train: {tsv: a}}\n"
      "training: {max_steps: 10}\n";
  says(config_error(blind, {"validation.metric=chrf"}), "there is no 'data.validation'");
  says(config_error(blind, {"checkpoints.keep_best=7"}), "there is no 'data.validation'");
  // A tokenizer that is read goes before one that is described.
  EXPECT_EQ(error_with({"tokenizer.source=a.spm", "tokenizer.vocabulary=9000"}), "no error");
  const TrainConfig rotary =
      config_of(kSmallest, {"model.position=rotary", "model.rotary_base=5e5"});
  EXPECT_EQ(rotary.model.as<TransformerConfig>().rotary_base, 5e5);
}

TEST(TrainConfig, ThePresetsNumberOfPositionsMayStandBesideOthers) {
  const std::vector<std::string> small = {"model.preset=small", "model.position=rotary"};
  const std::string written = to_yaml(config_of(kText, small));
  EXPECT_EQ(written.find("max_positions"), std::string::npos) << written;
  EXPECT_EQ(to_yaml(config_of(written)), written);
  const auto with_positions = [&](const char* number) {
    return config_error(kText, {small[0], small[1], std::string("model.max_positions=") + number});
  };
  EXPECT_EQ(with_positions("256"), "no error");
  EXPECT_NE(with_positions("1024").find("'model.max_positions' has no effect"), std::string::npos);
}

TEST(TrainConfig, LabelsThatNobodyLearnsAreAMistake) {
  const std::string bert =
      "output: run\nmodel: {family: bert, labels: [a, b]}\ntraining: {max_steps: 10}\n";
  EXPECT_EQ(config_error(bert + "data: {train: {text: a.txt}}\n"),
            "a.yaml:2: 'model.labels' has no effect: 'training.objective' is masked, which teaches "
            "no labels.");
  EXPECT_EQ(
      config_error(bert + "data: {train: {tsv: a.tsv}}\n", {"training.objective=classification"}),
      "no error");
}

TEST(TrainConfig, BucketsOfOneDirectionCanBeTwo) {
  const std::vector<std::string> two = {"model.position=relative", "model.relative_buckets=2"};
  EXPECT_EQ(config_error(kText, two), "no error");
  EXPECT_NE(error_with(two).find("there are at least 4"), std::string::npos);
}

}  // namespace
}  // namespace nunchi::testing
