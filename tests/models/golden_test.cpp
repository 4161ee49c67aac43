// Compares models with PyTorch and Hugging Face: logits, loss, every gradient and the losses of
// optimiser steps, from the files that the scripts in tests/golden have written. The test finds the
// files of a family by itself and checks that they cover every kind of position.
#include <cstdlib>
#include <filesystem>
#include <set>

#include "nunchi/autograd/tape.h"
#include "nunchi/training/optimizer.h"
#include "tests/golden/golden_file.h"
#include "tests/models/every_model.h"

namespace nunchi::testing {
namespace {

class GoldenModel {
 public:
  // PyTorch computed in f64 and stored f32, so a model in f64 differs only by that rounding. A
  // model in f32 computes as in real use.
  GoldenModel(const SafetensorsFile& file, DType dtype)
      : file_(file),
        model_(context_, make_model(file.metadata().at("config"), "config"),
               {.dtype = dtype, .gradients = true}),
        sentences_{.sources = {}, .targets = sentences_in(file, "target")} {
    context_.arena().poison();
    if (model_.has_source()) sentences_.sources = sentences_in(file, "source");
    load_parameters();
  }

  void compare(double tolerance) {
    EXPECT_LE(largest_difference(to_host_f64(model_.scores(sentences_)),
                                 values_of<float>(file_, "logits")),
              5 * tolerance);
    const auto expected_losses = values_of<float>(file_, "token_losses");
    const VocabularyLoss loss = model_.loss(sentences_, kLoss);
    const auto predicted = static_cast<std::int64_t>(expected_losses.size());
    EXPECT_LE(largest_difference(to_host_f64(loss.tokens.rows(0, predicted)), expected_losses),
              5 * tolerance);
    const double expected = values_of<float>(file_, "loss")[0];
    EXPECT_NEAR(run_backward(), expected, tolerance * expected);
    for (const nn::ParameterEntry& entry : model_.parameters().entries()) {
      const std::vector<float> expected_gradient =
          values_of<float>(file_, "gradients/" + entry.name);
      double largest = 1;
      for (const float value : expected_gradient)
        largest = std::max(largest, std::fabs(double{value}));
      EXPECT_LE(largest_difference(to_host_f64(entry.variable.gradient()), expected_gradient),
                tolerance * largest)
          << entry.name;
    }
  }

  // Compares the losses of a few steps of Adam and AdamW, which the files of encoder-decoders have.
  void compare_steps(double tolerance) {
    if (!model_.has_source()) return;
    compare_steps("losses", {.max_norm = 1}, tolerance);
    compare_steps("adamw_losses", {.weight_decay = 0.1}, tolerance);
  }

 private:
  static constexpr VocabularyLossOptions kLoss = {.smoothing = 0.1, .chunk = 16};

  void load_parameters() {
    for (const nn::ParameterEntry& entry : model_.parameters().entries()) {
      convert(from_host(context_, values_of<float>(file_, "parameters/" + entry.name), entry.shape),
              entry.variable.value());
    }
    model_.parameters().changed();
    fill(model_.parameters().gradients(), 0);
  }

  double run_backward() {
    Tape tape(context_);
    const VocabularyLoss loss = model_.loss(sentences_, kLoss);
    tape.backward(loss.total);
    return to_host<double>(loss.total.value())[0];
  }

  void compare_steps(const std::string& name, const AdamOptions& options, double tolerance) {
    ASSERT_NE(file_.find(name), nullptr) << "the golden file has no tensor '" << name << "'";
    load_parameters();
    AdamOptimizer optimizer(model_.parameters(), options);
    const auto tokens = static_cast<double>(values_of<float>(file_, "token_losses").size());
    for (const float expected : values_of<float>(file_, name)) {
      EXPECT_NEAR(run_backward(), expected, tolerance * std::fabs(expected))
          << name << " " << optimizer.steps();
      optimizer.step({.learning_rate = 1e-3, .tokens = tokens});
    }
  }

  CpuContext context_{CpuOptions{.threads = 2}};
  const SafetensorsFile& file_;
  AnyModel model_;
  Sentences sentences_;
};

// The text value of a key in the text of a config.json; empty if it is missing.
std::string value_in(const std::string& json, const std::string& key) {
  const std::size_t found = json.find("\"" + key + "\": \"");
  if (found == std::string::npos) return {};
  const std::size_t begin = found + key.size() + 5;
  return json.substr(begin, json.find('"', begin) - begin);
}

// The variant of a family that a config describes, such as "clipped" or "gru additive".
std::string variant_of(const std::string& config) {
  if (value_in(config, "family") == "rnn") {
    return value_in(config, "cell") + " " + value_in(config, "attention");
  }
  const bool clipped =
      value_in(config, "position") == "relative" && value_in(config, "relative_kind") == "clipped";
  return clipped ? "clipped" : value_in(config, "position");
}

// All variants of a family.
std::set<std::string> variants_of(std::string_view family) {
  if (family == "rnn") {
    return {"gru none", "gru additive", "gru dot", "lstm none", "lstm additive", "lstm dot"};
  }
  std::set<std::string> all;
  for (const NamedPosition& position : kPositions) all.emplace(position.name);
  return all;
}

class Golden : public EveryModel {};

TEST_P(Golden, LogitsLossGradientsAndStepsAgreeWithPyTorch) {
  std::set<std::string> seen;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder())) {
    if (entry.path().extension() != ".safetensors") continue;
    const SafetensorsFile file = SafetensorsFile::open(entry.path());
    const std::string& config = file.metadata().at("config");
    if (value_in(config, "family") != GetParam()) continue;
    SCOPED_TRACE(entry.path().filename().string());
    seen.insert(variant_of(config));
    GoldenModel exact(file, DType::f64), rounded(file, DType::f32);
    exact.compare(1e-6);
    exact.compare_steps(1e-6);
    rounded.compare(1e-5);
    // Adam normalises each gradient by its magnitude, so rounding errors of small gradients grow
    // with the steps.
    rounded.compare_steps(1e-4);
  }
  EXPECT_EQ(seen, variants_of(GetParam()));
}

FOR_EVERY_FAMILY(Golden);

TEST(GoldenBase, AgreesWithPyTorch) {
  const char* path = std::getenv("NUNCHI_GOLDEN_BASE");
  if (path == nullptr) {
    GTEST_SKIP() << "tests/golden/compare_base.sh makes the file for this (needs PyTorch)";
  }
  const SafetensorsFile file = SafetensorsFile::open(path);
  GoldenModel model(file, DType::f32);
  model.compare(1e-4);
  model.compare_steps(1e-4);
}

}  // namespace
}  // namespace nunchi::testing
