// The training config: reading its keys, and the defaults.
#include "nunchi/training/config/train_config.h"

#include <gtest/gtest.h>

#include "nunchi/models/families/bert_config.h"
#include "nunchi/models/families/gpt_config.h"
#include "nunchi/models/families/transformer_config.h"
#include "nunchi/training/config/key_aliases.h"
#include "tests/files.h"
#include "tests/paths.h"
#include "tests/training/config/config_texts.h"

namespace nunchi::testing {
namespace {

const std::filesystem::path kConfigs = std::filesystem::path(NUNCHI_SOURCE_DIR) / "configs";

TEST(TrainConfig, AMinimalConfigHasTheDefaults) {
  const TrainConfig config = config_of(kMinimal);
  EXPECT_EQ(config.output, "run");
  EXPECT_EQ(config.cache(), "run/cache");
  EXPECT_EQ(config.seed, 1u);
  EXPECT_EQ(config.model->family(), "transformer");
  EXPECT_EQ(config.model.as<TransformerConfig>().width, 512);
  EXPECT_EQ(config.tokenizer.options.kind, TokenizerKind::bpe);
  EXPECT_TRUE(config.tokenizer.shared);
  ASSERT_EQ(config.data.train.size(), 1u);
  EXPECT_EQ(config.data.train_parts()[0].source, "a.en");
  EXPECT_EQ(config.data.train[0].weight, 1);
  EXPECT_EQ(config.data.validation_part()->target, "b.de");
  EXPECT_EQ(config.training.optimizer.adam.beta2, 0.98);
  EXPECT_EQ(config.training.optimizer.adam.max_norm, 1);
  EXPECT_EQ(config.training.schedule.kind, ScheduleKind::inverse_sqrt);
  EXPECT_EQ(config.training.ema, 0);
  EXPECT_EQ(config.training.max_steps, 10);
  EXPECT_EQ(config.generation.beam_size, 5);
}

// Embeddings initialised at 0.02 would be negligible beside sinusoidal positions of size 1.
TEST(TrainConfig, SinusoidalPositionsScaleEmbeddingsByDefault) {
  const auto scaled = [](const std::vector<std::string>& assignments) {
    const TrainConfig config = config_of(kMinimalText, assignments);
    // The written config has the value, so that a later change of the default does not matter.
    const std::string key = "scale_embeddings: ";
    const std::string text = to_yaml(config);
    const bool scales = config.model->family() == "gpt"
                            ? config.model.as<GptConfig>().scale_embeddings
                            : config.model.as<BertConfig>().scale_embeddings;
    EXPECT_NE(text.find(key + (scales ? "true" : "false")), text.npos) << text;
    return scales;
  };
  for (const std::string family : {"gpt", "bert"}) {
    const std::string model = "model.family=" + family;
    EXPECT_TRUE(scaled({model, "model.position=sinusoidal"})) << family;
    EXPECT_FALSE(scaled({model, "model.position=sinusoidal", "model.scale_embeddings=false"}));
    EXPECT_FALSE(scaled({model, "model.position=rotary"})) << family;
    EXPECT_FALSE(scaled({model})) << family;
    EXPECT_TRUE(scaled({model, "model.scale_embeddings=true"})) << family;
  }
  // A saved model without the key was made before the key existed, so embeddings are not scaled.
  EXPECT_FALSE(read_model_config("{\"family\": \"gpt\", \"position\": \"sinusoidal\"}", "a")
                   .as<GptConfig>()
                   .scale_embeddings);
}

TEST(TrainConfig, EveryKeyIsRead) {
  const TrainConfig config = config_of(R"(
output: runs/x
seed: 7
initialize_from: models/old
model: {family: transformer, preset: tiny, dropout: 0.25, tied_embeddings: target, position: relative,
        kv_heads: 2, head_width: 48, bias: false, norm_epsilon: 1e-6, scale_embeddings: false, scale_attention: false,
        scale_output: true, residual_connections: false, normalize: false, look_ahead_mask: false,
        relative_kind: clipped, relative_max_distance: 20, activation: geglu}
tokenizer: {kind: unigram, vocabulary: 500, shared: false, byte_fallback: false,
            character_coverage: 0.995, symbols: [<ko>, "2"], split_digits: true, max_lines: 9,
            source: s.spm, target: t.spm}
data:
  root: /data
  cache: /cache
  train:
    - {source: a.en, target: /b/a.de, weight: 2}
    - {tsv: c.tsv.xz, source_column: 2, target_column: 3, weight: 0.5}
  validation: {tsv: d.tsv}
  max_length: 100
  max_ratio: 2.5
training:
  objective: translation
  batch_tokens: 1000
  accumulate: 3
  gradient_sum: tree
  label_smoothing: 0.2
  ema: 0.9999
  optimizer: {kind: adamw, beta1: 0.8, beta2: 0.9, epsilon: 1.0e-8, weight_decay: 0.01, clip_norm: 0}
  schedule: {kind: cosine, learning_rate: 0.001, warmup: 10, final: 1e-5}
  max_steps: 50
  max_epochs: 2
  max_minutes: 1.5
  log_every: 5
checkpoints: {every: 10, keep_last: 1, keep_best: 3, average: 2}
validation: {every: 20, metric: chrf, lowercase: true, beam_size: 2, patience: 4}
generation: {beam_size: 6, normalize: 0.6, max_length: 90}
)");
  EXPECT_EQ(config.output, "runs/x");
  EXPECT_EQ(config.seed, 7u);
  EXPECT_EQ(config.initialize_from, "models/old");
  const auto& model = config.model.as<TransformerConfig>();
  EXPECT_EQ(model.width, 128);
  EXPECT_EQ(model.dropout, 0.25f);
  EXPECT_EQ(model.attention_dropout, 0.2f);
  EXPECT_EQ(model.tied_embeddings, TiedEmbeddings::target);
  EXPECT_EQ(model.position, nn::PositionKind::relative);
  EXPECT_EQ(model.kv_heads, 2);
  EXPECT_EQ(model.head_width, 48);
  EXPECT_FALSE(model.bias);
  EXPECT_EQ(model.norm_epsilon, 1e-6);
  EXPECT_FALSE(model.scale_embeddings);
  EXPECT_FALSE(model.scale_attention);
  EXPECT_TRUE(model.scale_output);
  EXPECT_FALSE(model.residual_connections);
  EXPECT_FALSE(model.normalize);
  EXPECT_FALSE(model.look_ahead_mask);
  EXPECT_EQ(model.relative_kind, nn::RelativeKind::clipped);
  EXPECT_EQ(model.relative_max_distance, 20);
  EXPECT_EQ(model.activation, ActivationKind::geglu);
  EXPECT_EQ(config.tokenizer.options.kind, TokenizerKind::unigram);
  EXPECT_EQ(config.tokenizer.options.vocabulary, 500);
  EXPECT_FALSE(config.tokenizer.shared);
  EXPECT_FALSE(config.tokenizer.options.byte_fallback);
  EXPECT_EQ(config.tokenizer.options.character_coverage, 0.995);
  EXPECT_EQ(config.tokenizer.options.symbols, (std::vector<std::string>{"<ko>", "2"}));
  EXPECT_TRUE(config.tokenizer.options.split_digits);
  EXPECT_EQ(config.tokenizer.options.max_lines, 9);
  EXPECT_EQ(config.tokenizer.source, "s.spm");
  EXPECT_EQ(config.tokenizer.target, "t.spm");
  EXPECT_EQ(config.cache(), "/cache");
  const std::vector<CorpusPart> parts = config.data.train_parts();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].source, "/data/a.en");
  EXPECT_EQ(parts[0].target, "/b/a.de");
  EXPECT_TRUE(parts[0].tsv.empty());
  EXPECT_EQ(parts[0].weight, 2);
  EXPECT_EQ(parts[1].tsv, "/data/c.tsv.xz");
  EXPECT_TRUE(parts[1].source.empty());
  EXPECT_EQ(parts[1].source_column, 2);
  EXPECT_EQ(parts[1].target_column, 3);
  EXPECT_EQ(config.data.validation_part()->tsv, "/data/d.tsv");
  EXPECT_EQ(config.data.limits.max_length, 100);
  EXPECT_EQ(config.data.limits.max_ratio, 2.5);
  EXPECT_EQ(config.training.batch_tokens, 1000);
  EXPECT_EQ(config.training.accumulate, 3);
  EXPECT_EQ(config.training.gradient_sum, GradientSum::tree);
  EXPECT_EQ(config.training.label_smoothing, 0.2);
  EXPECT_EQ(config.training.ema, 0.9999);
  EXPECT_EQ(config.training.optimizer.kind, OptimizerConfig::Kind::adamw);
  EXPECT_EQ(config.training.optimizer.adam.beta1, 0.8);
  EXPECT_EQ(config.training.optimizer.adam.beta2, 0.9);
  EXPECT_EQ(config.training.optimizer.adam.epsilon, 1e-8);
  EXPECT_EQ(config.training.optimizer.adam.weight_decay, 0.01);
  EXPECT_EQ(config.training.optimizer.adam.max_norm, 0);
  EXPECT_EQ(config.training.schedule.kind, ScheduleKind::cosine);
  EXPECT_EQ(config.training.schedule.peak, 0.001);
  EXPECT_EQ(config.training.schedule.warmup, 10);
  EXPECT_EQ(config.training.schedule.final, 1e-5);
  EXPECT_EQ(config.training.max_steps, 50);
  EXPECT_EQ(config.training.max_epochs, 2);
  EXPECT_EQ(config.training.max_minutes, 1.5);
  EXPECT_EQ(config.training.log_every, 5);
  EXPECT_EQ(config.checkpoints.every, 10);
  EXPECT_EQ(config.checkpoints.keep_last, 1);
  EXPECT_EQ(config.checkpoints.keep_best, 3);
  EXPECT_EQ(config.checkpoints.average, 2);
  EXPECT_EQ(config.validation.every, 20);
  EXPECT_EQ(config.validation.metric, ValidationMetric::chrf);
  EXPECT_TRUE(config.validation.lowercase);
  EXPECT_EQ(config.validation.beam_size, 2);
  EXPECT_EQ(config.validation.patience, 4);
  EXPECT_EQ(config.generation.beam_size, 6);
  EXPECT_EQ(config.generation.normalize, 0.6);
  EXPECT_EQ(config.generation.max_length, 90);
  // The written text has every key, so equal texts mean equal configs.
  const std::string written = to_yaml(config);
  EXPECT_EQ(to_yaml(config_of(written)), written);
  for (const char* key :
       {"initialize_from: models/old", "dropout: 0.25", "split_digits: true", "max_lines: 9",
        "target: t.spm", "cache: /cache", "weight: 0.5", "tsv: d.tsv", "max_ratio: 2.5",
        "weight_decay: 0.01", "final: 1e-05", "max_minutes: 1.5", "metric: chrf", "patience: 4",
        "normalize: 0.6", "symbols: [<ko>, \"2\"]"}) {
    EXPECT_NE(written.find(key), std::string::npos) << key << " is not in\n" << written;
  }
}

TEST(TrainConfig, BertDefaultsToTheMaskedObjective) {
  const std::string text = R"(
output: run
model: {family: bert, preset: bert-small}
data: {train: {text: a.txt}, validation: {text: b.txt}}
training: {max_steps: 10}
)";
  const TrainConfig config = config_of(text);
  EXPECT_EQ(config.model.as<BertConfig>().layers, 6);
  EXPECT_EQ(config.training.objective, ObjectiveKind::masked);
  EXPECT_EQ(config.training.mask_share, 0.15);
  EXPECT_FALSE(config.training.whole_words);
  EXPECT_EQ(config.training.label_smoothing, 0);
  EXPECT_EQ(config.data.cut, TextCut::lines);
  EXPECT_EQ(config.validation.metric, ValidationMetric::loss);
  EXPECT_EQ(config.tokenizer.options.symbols, (std::vector<std::string>{"[MASK]"}));
  EXPECT_EQ(to_yaml(config_of(to_yaml(config))), to_yaml(config));

  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    return config_of(other.replace(other.find(from), from.size(), to));
  };
  const TrainConfig other = changed("max_steps: 10",
                                    "max_steps: 10, mask_share: 0.3, whole_words: true}\n"
                                    "tokenizer: {symbols: [x, <mask>]}\n"
                                    "validation: {metric: accuracy");
  EXPECT_EQ(other.training.mask_share, 0.3);
  EXPECT_TRUE(other.training.whole_words);
  EXPECT_EQ(other.validation.metric, ValidationMetric::accuracy);
  EXPECT_EQ(other.tokenizer.options.symbols, (std::vector<std::string>{"x", "<mask>"}));
  // An existing tokenizer gets no additional symbols.
  EXPECT_TRUE(changed("output: run", "output: run\ninitialize_from: old")
                  .tokenizer.options.symbols.empty());
  // generation.max_length does not matter to a model that does not generate.
  EXPECT_EQ(changed("bert-small}", "bert-small, max_positions: 256}").generation.max_length, 256);
}

TEST(TrainConfig, ClassificationReadsPairsInRandomBatches) {
  const std::string text = R"(
output: run
model: {family: bert, preset: bert-small}
data: {train: {tsv: a.tsv}, validation: {source: b.txt, target: b.labels}}
training: {objective: classification, max_steps: 10}
validation: {metric: accuracy}
)";
  const TrainConfig config = config_of(text);
  EXPECT_EQ(config.training.batch_by, BatchBy::random);
  EXPECT_EQ(source_tokens(config.training), config.training.batch_tokens);
  EXPECT_TRUE(config.tokenizer.options.symbols.empty());
  std::string wrong = text;
  wrong.replace(wrong.find("tsv: a.tsv"), 10, "text: a.txt");
  EXPECT_NE(config_error(wrong).find("the objective classification"), std::string::npos);
  wrong = text;
  wrong.replace(wrong.find("accuracy"), 8, "bleu");
  EXPECT_NE(config_error(wrong).find("'loss' or 'accuracy'"), std::string::npos);
}

TEST(TrainConfig, ReadsEveryConfigInTheRepository) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kConfigs)) {
    const TrainConfig config = read_train_config(
        entry.path(), std::vector<std::string>{"data.root=/data", "training.max_steps=20000"});
    EXPECT_EQ(files_of(config.data.train_parts()[0])[0].parent_path(), "/data") << entry.path();
    EXPECT_EQ(config.training.max_steps, 20000);
    EXPECT_EQ(config.output, "runs" / entry.path().stem());
    EXPECT_EQ(to_yaml(config_of(to_yaml(config))), to_yaml(config));
    ++count;
  }
  EXPECT_GE(count, 5);
}

TEST(TrainConfig, PaperBaseHasThePapersValues) {
  const TrainConfig config = read_train_config(kConfigs / "paper-base.yaml");
  const TransformerConfig& model = config.model.as<TransformerConfig>();
  EXPECT_EQ(model.encoder_layers, 6);
  EXPECT_EQ(model.decoder_layers, 6);
  EXPECT_EQ(model.width, 512);
  EXPECT_EQ(model.heads, 8);
  EXPECT_EQ(model.feed_forward, 2048);
  EXPECT_EQ(model.norm_placement, nn::NormPlacement::post);
  EXPECT_EQ(model.dropout, 0.1f);
  EXPECT_EQ(model.attention_dropout, 0);
  EXPECT_EQ(model.activation_dropout, 0);
  EXPECT_EQ(config.tokenizer.options.vocabulary, 37000);
  EXPECT_EQ(config.training.batch_tokens * config.training.accumulate, 25000);
  EXPECT_EQ(config.training.schedule.kind, ScheduleKind::paper);
  EXPECT_EQ(config.training.schedule.warmup, 4000);
  EXPECT_EQ(config.training.max_steps, 100000);
  EXPECT_EQ(config.checkpoints.average, 5);
}

TEST(TrainConfig, ErrorsNameTheFileAndLineOrTheAssignment) {
  EXPECT_EQ(config_error("output: run\nmodel:\n  family: transformer\n  droput: 0.1\n"),
            "a.yaml:4: unknown key 'model.droput'. Did you mean 'model.dropout'?");
  EXPECT_EQ(
      config_error("training:\n  batch_tokens: abc\n"),
      "a.yaml:2: 'training.batch_tokens' must be a whole number from 1 to 16777216 or auto, not "
      "'abc'.");
  EXPECT_EQ(minimal_error({"training.shedule.warmup=3"}),
            "--set training.shedule.warmup=3: unknown key 'training.shedule'. Did you mean "
            "'training.schedule'?");
  EXPECT_EQ(
      minimal_error({"model.preset=huge"}),
      "--set model.preset=huge: 'model.preset' must be one of tiny | base | big, not 'huge'.");
  const std::string unknown = minimal_error({"model.family=xlnet"});
  EXPECT_TRUE(
      unknown.starts_with("--set model.family=xlnet: 'model.family' must be one of transformer, "))
      << unknown;
  EXPECT_TRUE(unknown.ends_with(", not 'xlnet'.")) << unknown;
  EXPECT_EQ(minimal_error({"model.source_vocabulary=100"}),
            "--set model.source_vocabulary=100: 'model.source_vocabulary' cannot be given here: "
            "the tokenizers decide it.");
  EXPECT_NE(
      minimal_error({"model.heads=3"}).find("--set model.heads=3: 'model.heads' is 3, but a width"),
      std::string::npos);
  EXPECT_NE(minimal_error({"data.train={source: a, target: b, weight: 0}"}).find("above 0"),
            std::string::npos);
  EXPECT_NE(
      minimal_error({"data.validation={source: a, target: b, weight: 1}"}).find("unknown key"),
      std::string::npos);
  for (const char* wrong :
       {"training.optimizer.epsilon=nan", "training.schedule.learning_rate=.inf",
        "training.label_smoothing=1", "training.ema=1", "seed=-1", "training.accumulate=0",
        "generation.beam_size=0", "tokenizer.character_coverage=0.5", "training.optimizer.beta1=1",
        "checkpoints.every=0", "training.max_steps=1e3", "tokenizer.kind=word", "training=[1]",
        "data.max_ratio=0.9", "generation.max_length=1048577", "checkpoints.keep_best=4"}) {
    EXPECT_EQ(minimal_error({wrong}).rfind("--set " + std::string(wrong) + ": '", 0), 0u)
        << minimal_error({wrong});
  }
}

TEST(TrainConfig, UnknownKeysAreSoughtInTheWholeConfig) {
  for (const auto& [key, suggested] :
       {std::pair<std::string, std::string>{"training.learning_rate",
                                            "'training.schedule.learning_rate'"},
        {"lr", "'training.schedule.learning_rate'"},
        {"training.lr", "'training.schedule.learning_rate'"},
        {"model.d_model", "'model.width'"},
        {"model.layers", "'model.encoder_layers' or 'model.decoder_layers'"},
        {"model.num_heads", "'model.heads'"},
        {"training.n_heads", "'model.heads'"},
        {"model.dim_feedforward", "'model.feed_forward'"},
        {"training.batch_size", "'training.batch_tokens'"},
        {"training.epochs", "'training.max_epochs'"},
        {"training.warmup_steps", "'training.schedule.warmup'"},
        {"training.width", "'model.width'"},
        {"training.patience", "'validation.patience'"},
        {"model.every", "'checkpoints.every' or 'validation.every'"},
        {"beam_size", "'validation.beam_size' or 'generation.beam_size'"},
        {"training.beam_sise", "'validation.beam_size' or 'generation.beam_size'"},
        {"vocab_size", "'tokenizer.vocabulary'"},
        {"output_dir", "'output'"},
        {"data.validation.srouce", "'data.validation.source'"},
        {"max_grad_norm", "'training.optimizer.clip_norm'"}}) {
    const std::string assignment = key + "=1";
    EXPECT_EQ(minimal_error({assignment}), "--set " + assignment + ": unknown key '" + key +
                                               "'. Did you mean " + suggested + "?");
  }
  EXPECT_EQ(config_error(kMinimalText, {"model.num_layers=3"}),
            "--set model.num_layers=3: unknown key 'model.num_layers'. Did you mean "
            "'model.layers'?");
  EXPECT_EQ(minimal_error({"xyzzyx=1"}), "--set xyzzyx=1: unknown key 'xyzzyx'.");
}

// Every alias leads to keys that exist.
TEST(TrainConfig, AliasesNameKnownKeys) {
  for (const KeyAlias& alias : train_config_aliases()) {
    const std::string assignment = std::string(alias.name) + "=1";
    const std::string message = minimal_error({assignment});
    const bool known =
        message.find("Did you mean '" + std::string(alias.keys.front())) != message.npos ||
        alias.keys.front() == "model.layers";
    EXPECT_TRUE(known) << message;
  }
}

TEST(TrainConfig, ARunThatStartsFromAModelTakesItsOptions) {
  const TemporaryFolder folder;
  TransformerConfig model;
  model.source_vocabulary = model.target_vocabulary = 50;
  model.width = 64;
  model.heads = 2;
  model.dropout = 0.25f;
  write_text(folder / "config.json", ModelConfig(model)->to_json());
  const std::string text =
      "output: run\ndata: {train: {source: a.en, target: a.de}}\ntraining: {max_steps: 10}\n";
  const std::string from = "initialize_from=" + folder.path().string();
  const TrainConfig config = config_of(text, {from});
  EXPECT_EQ(config.model.as<TransformerConfig>().width, 64);
  EXPECT_EQ(config.model.as<TransformerConfig>().dropout, 0.25f);
  EXPECT_EQ(to_yaml(config_of(to_yaml(config))), to_yaml(config));
  EXPECT_EQ(config_of(text, {from, "model={family: transformer, width: 32}"})
                .model.as<TransformerConfig>()
                .width,
            32);
  EXPECT_NE(config_error(text).find("'model' is missing; it must have"), std::string::npos);
  const std::string missing = config_error(text, {"initialize_from=/nowhere"});
  EXPECT_EQ(missing.find("--set initialize_from=/nowhere: 'initialize_from' names no model to "
                         "take, and 'model' is missing: "),
            0u)
      << missing;
}

TEST(TrainConfig, ErrorsNameAllAssignmentsThatContribute) {
  EXPECT_EQ(minimal_error({"checkpoints.keep_best=3", "checkpoints.average=4", "seed=2"})
                .find("--set checkpoints.average=4 and --set checkpoints.keep_best=3: "
                      "'checkpoints.average' is larger"),
            0u);
  // An assignment to another key of the same map is not the cause.
  const std::string positions = minimal_error({"generation.beam_size=2", "model.position=learned",
                                               "model.max_positions=64", "data.max_length=100"});
  EXPECT_EQ(
      positions.find("--set model.max_positions=64 and --set model.position=learned and --set "
                     "data.max_length=100: 'model.max_positions' is 64"),
      0u)
      << positions;
  const std::string patience = config_error(
      "output: run\nmodel: {family: transformer}\n"
      "data: {train: {source: a.en, target: a.de}}\ntraining: {max_steps: 0}\n",
      {"validation.lowercase=false"});
  EXPECT_EQ(patience.find("a.yaml:4: 'training' never ends"), 0u) << patience;
}

TEST(TrainConfig, BatchTokensCanBeFoundAutomatically) {
  const TrainConfig config = config_of(kMinimal, {"training.batch_tokens=auto"});
  EXPECT_EQ(config.training.batch_tokens, kAutomatic);
  EXPECT_NE(to_yaml(config).find("batch_tokens: auto"), std::string::npos);
  EXPECT_EQ(to_yaml(config_of(to_yaml(config))), to_yaml(config));
  EXPECT_NE(minimal_error({"training.batch_tokens=0"}).find("from 1 to 16777216 or auto, not '0'"),
            std::string::npos);
}

TEST(TrainConfig, MissingKeysAreErrors) {
  EXPECT_EQ(config_error(""), "a.yaml: 'output' is missing; it names the folder of the run.");
  EXPECT_NE(config_error("output: x").find("'model' is missing"), std::string::npos);
  EXPECT_TRUE(
      config_error("output: x\nmodel:\n  width: 8\n")
          .starts_with("a.yaml:2: 'model.family' is missing; it must be one of transformer, "));
  EXPECT_EQ(config_error("output: x\nmodel: {family: transformer}\n\ndata: {max_length: 3}"),
            "a.yaml:4: 'data.train' is missing; it names the pairs of sentences to learn from.");
  EXPECT_NE(minimal_error({"data.train=[]"}).find("'data.train' is missing"), std::string::npos);
  EXPECT_EQ(minimal_error({"training.max_steps=0"}),
            "--set training.max_steps=0: 'training' never ends: set 'max_steps', 'max_epochs', "
            "'max_minutes' or "
            "'validation.patience'.");
  for (const char* end :
       {"training.max_epochs=1", "training.max_minutes=0.5", "validation.patience=3"}) {
    EXPECT_EQ(minimal_error({"training.max_steps=0", end}), "no error") << end;
  }
}

TEST(TrainConfig, LanguageModelsHaveDifferentDefaults) {
  const TrainConfig config = config_of(kMinimalText);
  EXPECT_EQ(config.model->family(), "gpt");
  EXPECT_EQ(config.model.as<GptConfig>().layers, 12);
  EXPECT_EQ(config.training.objective, ObjectiveKind::causal);
  EXPECT_EQ(config.training.label_smoothing, 0);
  EXPECT_EQ(config.data.cut, TextCut::windows);
  EXPECT_EQ(config.data.text_window(), 256);
  EXPECT_EQ(config.validation.metric, ValidationMetric::loss);
  EXPECT_EQ(config.generation.beam_size, 1);
  EXPECT_EQ(to_yaml(config_of(to_yaml(config))), to_yaml(config));
}

TEST(TrainConfig, EveryKeyOfALanguageModelIsRead) {
  const TrainConfig config = config_of(
      kMinimalText,
      {"data.train=[{text: a.txt, weight: 2, last_line: 7}, {text: /c.gz, first_line: 3}]",
       "data.root=/data", "data.window=64", "data.cut=windows", "tokenizer.kind=characters",
       "model.preset=small", "model.layers=3", "model.tied_embeddings=false",
       "training.label_smoothing=0.1", "training.objective=causal"});
  const std::vector<CorpusPart> parts = config.data.train_parts();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].text, "/data/a.txt");
  EXPECT_EQ(parts[0].weight, 2);
  EXPECT_EQ(parts[0].last_line, 7);
  EXPECT_EQ(parts[1].text, "/c.gz");
  EXPECT_EQ(parts[1].first_line, 3);
  EXPECT_EQ(config.data.text_window(), 64);
  EXPECT_EQ(config.tokenizer.options.kind, TokenizerKind::characters);
  EXPECT_EQ(config.model.as<GptConfig>().width, 384);
  EXPECT_EQ(config.model.as<GptConfig>().layers, 3);
  EXPECT_FALSE(config.model.as<GptConfig>().tied_embeddings);
  EXPECT_EQ(config.training.label_smoothing, 0.1);
  EXPECT_EQ(to_yaml(config_of(to_yaml(config))), to_yaml(config));
}

TEST(TrainConfig, AMissingFileIsAnError) {
  EXPECT_THROW(read_train_config("/nowhere/a.yaml"), Error);
}

}  // namespace
}  // namespace nunchi::testing
