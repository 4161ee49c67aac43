// The model against PyTorch: logits, loss, every gradient and the losses of optimiser steps, from
// the files that tests/golden/make_golden.py wrote.
#include <cstdlib>

#include "nunchi/autograd/tape.h"
#include "nunchi/training/optimizer.h"
#include "tests/golden/golden_file.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

class Golden : public ::testing::Test {
 protected:
  // In f64 we compute as PyTorch did, and what differs is how its numbers were stored; in f32 we
  // compute as users do.
  void open(const std::string& path, DType dtype) {
    context_.arena().poison();
    file_.emplace(SafetensorsFile::open(path));
    const TransformerConfig config =
        TransformerConfig::from_json(file_->metadata().at("config"), path);
    model_ = make_transformer(context_, config, {.dtype = dtype, .gradients = true});
    load_parameters();
    batch_ =
        make_pair_batch(context_, sentences_in(*file_, "source"), sentences_in(*file_, "target"),
                        {config.source_vocabulary, config.target_vocabulary});
  }

  void load_parameters() {
    for (const nn::ParameterEntry& entry : model_->parameters().entries()) {
      convert(
          from_host(context_, values_of<float>(*file_, "parameters/" + entry.name), entry.shape),
          entry.variable.value());
    }
    model_->parameters().changed();
  }

  double run_backward() {
    Tape tape(context_);
    const VocabularyLoss loss = model_->loss(batch_, {.smoothing = 0.1, .chunk = 16});
    tape.backward(loss.total);
    return to_host<double>(loss.total.value())[0];
  }

  void compare(double tolerance) {
    const Variable memory = model_->encode(batch_.source);
    const Variable hidden = model_->decode(batch_.target, memory, batch_.source.rows);
    const Tensor logits = model_->logits(hidden, batch_.target.rows).value();
    const std::int64_t rows = batch_.target.rows.rows;
    EXPECT_LE(
        largest_difference(to_host_f64(logits.rows(0, rows)), values_of<float>(*file_, "logits")),
        tolerance);
    const VocabularyLoss loss = model_->loss(batch_, {.smoothing = 0.1, .chunk = 16});
    EXPECT_LE(largest_difference(to_host_f64(loss.tokens.rows(0, rows)),
                                 values_of<float>(*file_, "token_losses")),
              tolerance);
    const double expected = values_of<float>(*file_, "loss")[0];
    EXPECT_NEAR(run_backward(), expected, 1e-6 * expected);
    for (const nn::ParameterEntry& entry : model_->parameters().entries()) {
      const std::vector<double> found = to_host_f64(entry.variable.gradient());
      const std::vector<float> wanted = values_of<float>(*file_, "gradients/" + entry.name);
      double largest = 0;
      for (const float value : wanted) largest = std::max(largest, std::fabs(double{value}));
      EXPECT_LE(largest_difference(found, wanted), tolerance * std::max(largest, 1.0))
          << entry.name;
    }
  }

  void compare_steps(const std::string& name, const AdamOptions& options, double tolerance) {
    load_parameters();
    fill(model_->parameters().gradients(), 0);
    AdamOptimizer optimizer(model_->parameters(), options);
    const auto tokens = static_cast<double>(batch_.target.rows.rows);
    for (const float expected : values_of<float>(*file_, name)) {
      EXPECT_NEAR(run_backward(), expected, tolerance * std::fabs(expected))
          << name << " " << optimizer.steps();
      optimizer.step({.learning_rate = 1e-3, .tokens = tokens});
    }
  }

  CpuContext context_{CpuOptions{.threads = 2}};
  std::optional<SafetensorsFile> file_;
  std::unique_ptr<Transformer> model_;
  PairBatch batch_;
};

class GoldenFiles : public Golden, public ::testing::WithParamInterface<const char*> {};

TEST_P(GoldenFiles, LogitsLossGradientsAndTenStepsAgreeWithPyTorch) {
  const std::string path = golden_path(GetParam());
  open(path, DType::f64);
  compare(1e-6);
  compare_steps("losses", {.max_norm = 1}, 1e-6);
  compare_steps("adamw_losses", {.weight_decay = 0.1}, 1e-6);
  open(path, DType::f32);
  compare(1e-5);
  // Adam divides by the gradient's own size, so the rounding of small gradients grows with the
  // steps.
  compare_steps("losses", {.max_norm = 1}, 1e-4);
  compare_steps("adamw_losses", {.weight_decay = 0.1}, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Small, GoldenFiles, ::testing::Values("post", "pre", "options", "gelu"));

TEST_F(Golden, BaseSizeAgreesWithPyTorch) {
  const char* path = std::getenv("NUNCHI_GOLDEN_BASE");
  if (path == nullptr)
    GTEST_SKIP() << "tests/golden/compare_base.sh makes the file for this (needs PyTorch)";
  open(path, DType::f32);
  compare(1e-4);
  compare_steps("losses", {.max_norm = 1}, 1e-4);
}

}  // namespace
}  // namespace nunchi::testing
