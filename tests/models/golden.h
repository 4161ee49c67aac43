// A model against PyTorch: logits, loss, every gradient and the losses of optimiser steps, from the
// files that the scripts of tests/golden wrote.
#pragma once

#include <optional>

#include "nunchi/autograd/tape.h"
#include "nunchi/data/batch.h"
#include "nunchi/ops/vocabulary_loss.h"
#include "nunchi/training/optimizer.h"
#include "tests/golden/golden_file.h"
#include "tests/support.h"

namespace nunchi::testing {

// Of an encoder-decoder and its config.
template <class Model, class Config>
class Golden : public ::testing::Test {
 protected:
  // In f64 we compute as PyTorch did, and what differs is how its numbers were stored; in f32 we
  // compute as users do.
  void open(const std::string& path, DType dtype) {
    context_.arena().poison();
    file_.emplace(SafetensorsFile::open(path));
    const Config config = Config::from_json(file_->metadata().at("config"), path);
    model_ = std::make_unique<Model>(config);
    model_->parameters().allocate(context_, {.dtype = dtype, .gradients = true});
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
    fill(model_->parameters().gradients(), 0);
  }

  double run_backward() {
    Tape tape(context_);
    const VocabularyLoss loss = model_->loss(batch_, {.smoothing = 0.1, .chunk = 16});
    tape.backward(loss.total);
    return to_host<double>(loss.total.value())[0];
  }

  void compare(double tolerance) {
    const Variable hidden =
        model_->decode(batch_.target, model_->encode(batch_.source), batch_.source.rows);
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
    AdamOptimizer optimizer(model_->parameters(), options);
    const auto tokens = static_cast<double>(batch_.target.rows.rows);
    for (const float expected : values_of<float>(*file_, name)) {
      EXPECT_NEAR(run_backward(), expected, tolerance * std::fabs(expected))
          << name << " " << optimizer.steps();
      optimizer.step({.learning_rate = 1e-3, .tokens = tokens});
    }
  }

  void compare_everything(const std::string& name) {
    const std::string path = golden_path(name);
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

  CpuContext context_{CpuOptions{.threads = 2}};
  std::optional<SafetensorsFile> file_;
  std::unique_ptr<Model> model_;
  PairBatch batch_;
};

}  // namespace nunchi::testing
