// Every family with every kind of position scores, learns and searches on the GPU as on the CPU.
#include "tests/models/every_model.h"

#include "nunchi/decoding/searcher.h"
#include "tests/models/cuda/found.h"
#include "tests/models/cuda/trained.h"

namespace nunchi::testing {
namespace {

// Sizes for which the GPU has its faster kernels.
constexpr ModelSize kWide = {
    .vocabulary = 211, .width = 128, .heads = 4, .head_width = 64, .feed_forward = 256};

const Sentences& sentences() {
  static const Sentences all = pairs_of({5, 1, 9, 33, 7, 64}, {6, 2, 33, 9, 64, 7}, 211);
  return all;
}

class EveryModelOnGpu : public EveryModel {};

TEST_P(EveryModelOnGpu, ScoresAndGradientsAgreeWithTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const NamedModel& named : models_of(GetParam(), kWide)) {
    SCOPED_TRACE(named.name);
    expect_like_cpu(
        [&](ContextBase& context, DType dtype) {
          const AnyModel model(context, named, kWide, {.dtype = dtype, .gradients = true});
          std::vector<Output> all = {output("scores", model.scores(sentences()))};
          const ModeScope scope(context, Mode::training);
          Tape tape(context);
          const VocabularyLoss loss = model.loss(sentences(), {.smoothing = 0.1});
          tape.backward(loss.total);
          all.push_back(output("loss", loss.total.value()));
          all.push_back(output("gradients", model.parameters().gradients()));
          for (const nn::ParameterEntry& entry : model.parameters().entries()) {
            if (!entry.name.ends_with("position.weight")) continue;
            all.push_back(output(entry.name, entry.variable.gradient()));
          }
          return all;
        },
        {.f32 = 1e-4, .bf16 = 0.15});
  }
}

Trained trained_on(ContextBase& context, const NamedModel& named, int steps) {
  const AnyModel model(context, named, kWide, {.gradients = true});
  double tokens = 0;
  for (const Tokens& target : sentences().targets) tokens += static_cast<double>(target.size());
  return train(model.parameters(), steps, tokens,
               [&] { return model.loss(sentences(), {.smoothing = 0.1}); });
}

TEST_P(EveryModelOnGpu, LearnsAsOnTheCpu) {
  SKIP_WITHOUT_GPU();
  ModelSize size = kWide;
  size.dropout = 0.1f;
  for (const NamedModel& named : models_of(GetParam(), size)) {
    SCOPED_TRACE(named.name);
    expect_learned_as_on_cpu([&](ContextBase& context) { return trained_on(context, named, 10); });
  }
}

TEST_P(EveryModelOnGpu, TrainingTwiceGivesTheSameBits) {
  SKIP_WITHOUT_GPU();
  ModelSize size = kWide;
  size.dropout = 0.1f;
  for (const NamedModel& named : models_of(GetParam(), size)) {
    SCOPED_TRACE(named.name);
    const auto weights = [&] {
      CudaContext context;
      return trained_on(context, named, 3).weights;
    };
    EXPECT_TRUE(same_bits(weights(), weights()));
  }
}

// Several batches: steps captured for the first are replayed for the second, whose first step has
// more tokens.
std::vector<Hypotheses> found_on(ContextBase& context, const NamedModel& named,
                                 const SearchOptions& options) {
  const AnyModel model(context, named, kWide);
  Searcher searcher = model.searcher(options);
  std::vector<Hypotheses> all;
  for (const std::uint64_t seed : {4, 5}) {
    std::vector<Tokens> sources = sentences_of({5, 1, 9, 33, 7, 64, 20}, 211, seed);
    std::vector<Tokens> prefixes = {{}, {7, 8}, {}, {}, {9}, {}, {}};
    if (seed == 5) prefixes.assign(sources.size(), Tokens(12, 7));
    DecoderTokens tokens = kTokens;
    if (model.has_source()) {
      for (Tokens& source : sources) source.push_back(tokens.end);
    } else {
      prefixes = sources;  // a language model continues a text, without an end token
      tokens.start = tokens.end = kNoToken;
    }
    for (Hypotheses& found :
         searcher({.source = model.source(sources), .prefixes = prefixes, .tokens = tokens})) {
      all.push_back(std::move(found));
    }
  }
  return all;
}

TEST_P(EveryModelOnGpu, SearchesFindTheSameAsOnTheCpu) {
  SKIP_WITHOUT_GPU();
  if (GetParam() == "bert") GTEST_SKIP() << "a bert does not generate";
  for (const int beam : {1, 4}) {
    const SearchOptions options{.beam_size = beam, .n_best = beam, .max_length = 30};
    for (const NamedModel& named : models_of(GetParam(), kWide)) {
      SCOPED_TRACE(named.name);
      CpuContext cpu({.threads = 2});
      CudaContext cuda({.precision = Precision::f32});
      expect_found_alike(found_on(cuda, named, options), found_on(cpu, named, options));
    }
  }
}

FOR_EVERY_FAMILY(EveryModelOnGpu);

}  // namespace
}  // namespace nunchi::testing
