// The values of a trace lead from one tap to the next, in every family with every kind of position,
// and the steps of a search have the same values as the whole sentence.
#include <algorithm>
#include <cmath>
#include <limits>

#include "nunchi/autograd/tape.h"
#include "nunchi/trace/trace.h"
#include "tests/models/every_model.h"

namespace nunchi::testing {
namespace {

using Values = std::vector<float>;

constexpr float kMasked = -std::numeric_limits<float>::infinity();

double largest_difference_of(const Values& a, const Values& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;  // both may be -inf
    largest = std::max(largest, std::fabs(double{a[i]} - double{b[i]}));
  }
  return largest;
}

// Finds the taps of one place.
class Place {
 public:
  Place(const Trace& trace, std::string stack, int layer, std::string part, int step = -1)
      : trace_(trace),
        stack_(std::move(stack)),
        layer_(layer),
        part_(std::move(part)),
        step_(step) {}

  const TapRecord* find(Tap tap) const { return trace_.find(tap, stack_, layer_, part_, step_); }
  const TapRecord& operator[](Tap tap) const {
    const TapRecord* found = find(tap);
    if (found == nullptr) throw Error(std::string(name_of(tap)) + " was not traced.");
    return *found;
  }
  const std::string& stack() const { return stack_; }
  const std::string& part() const { return part_; }
  int layer() const { return layer_; }

 private:
  const Trace& trace_;
  std::string stack_;
  int layer_;
  std::string part_;
  int step_;
};

Values sum_of(const Values& a, const Values& b) {
  Values sum = a;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += b[i];
  return sum;
}

// New models have a gain of one and a bias of zero.
Values normalized(const Values& rows, std::size_t width, bool rms) {
  Values result;
  for (std::size_t first = 0; first < rows.size(); first += width) {
    double mean = 0, squares = 0;
    for (std::size_t c = 0; c < width && !rms; ++c) mean += rows[first + c] / double(width);
    for (std::size_t c = 0; c < width; ++c) {
      squares += std::pow(rows[first + c] - mean, 2) / double(width);
    }
    for (std::size_t c = 0; c < width; ++c) {
      result.push_back(static_cast<float>((rows[first + c] - mean) / std::sqrt(squares + 1e-5)));
    }
  }
  return result;
}

// rows · Wᵀ + b for the layer with this name.
Values linear_of(const nn::Parameters& parameters, const std::string& name, const TapRecord& rows) {
  const nn::ParameterEntry& weight = *parameters.find(name + ".weight");
  const nn::ParameterEntry* bias = parameters.find(name + ".bias");
  const Values w = to_host<float>(parameters.weight(weight));
  const auto outputs = static_cast<std::size_t>(weight.shape[0]),
             inputs = static_cast<std::size_t>(weight.shape[1]);
  const Values b = bias != nullptr ? to_host<float>(parameters.weight(*bias)) : Values(outputs, 0);
  Values result;
  for (std::size_t first = 0; first < rows.values.size(); first += inputs) {
    for (std::size_t n = 0; n < outputs; ++n) {
      double sum = double{b[n]};
      for (std::size_t k = 0; k < inputs; ++k) {
        sum += double{rows.values[first + k]} * double{w[n * inputs + k]};
      }
      result.push_back(static_cast<float>(sum));
    }
  }
  return result;
}

// softmax(masked_scores) are the weights, and each stage of the scores follows from the one before.
void expect_scores_give_weights(const Place& at, bool causal) {
  const TapRecord &weights = at[Tap::attention_weights], &masked = at[Tap::masked_scores],
                  &products = at[Tap::scores];
  const TapRecord* const scaled = at.find(Tap::scaled_scores);
  const TapRecord* const biased = at.find(Tap::biased_scores);
  ASSERT_EQ(weights.values.size(), masked.values.size());
  const Values& before_mask = (biased != nullptr   ? *biased
                               : scaled != nullptr ? *scaled
                                                   : products)
                                  .values;
  if (scaled != nullptr) {
    const double head_width = double(at[Tap::query].shape[1]) / weights.heads;
    // Some models do not scale.
    const double factor =
        largest_difference_of(scaled->values, products.values) == 0 ? 1 : 1 / std::sqrt(head_width);
    Values expected = products.values;
    for (float& score : expected) score = static_cast<float>(score * factor);
    EXPECT_LE(largest_difference_of(scaled->values, expected), 1e-5);
  }
  double error = 0;
  for (std::size_t b = 0; b < weights.lengths.size(); ++b) {
    const auto queries = static_cast<std::size_t>(weights.lengths[b]),
               keys = static_cast<std::size_t>(weights.key_lengths[b]);
    auto at_row = static_cast<std::size_t>(weights.offsets[b]);
    for (std::size_t row = 0; row < queries * static_cast<std::size_t>(weights.heads); ++row) {
      const std::size_t i = row % queries;
      double sum = 0;
      for (std::size_t j = 0; j < keys; ++j) sum += std::exp(double{masked.values[at_row + j]});
      for (std::size_t j = 0; j < keys; ++j) {
        const float score = masked.values[at_row + j];
        const bool hidden = causal && j > i + keys - queries;
        EXPECT_EQ(score == kMasked, hidden) << "query " << i << ", key " << j;
        EXPECT_TRUE(hidden || score == before_mask[at_row + j]);
        const double expected = std::exp(double{score}) / sum;
        error = std::max(error, std::fabs(expected - double{weights.values[at_row + j]}));
      }
      at_row += keys;
    }
  }
  EXPECT_LE(error, 2e-5);
}

class TracedModel : public ::testing::TestWithParam<std::string_view> {};

TEST_P(TracedModel, ScoresGiveTheWeights) {
  CpuContext context({.threads = 2});
  for (const NamedModel& named : models_of(GetParam())) {
    SCOPED_TRACE(named.name);
    const AnyModel model(context, named);
    Trace trace;
    {
      const TraceScope scope(context, trace);
      model.scores(pairs_of({7, 1, 9}, {5, model.has_source() ? 0 : 1, 12}, 37));
    }
    for (const TapRecord& record : trace.records()) {
      if (record.tap != Tap::attention_weights) continue;
      SCOPED_TRACE(record.stack + " " + std::to_string(record.layer) + " " + record.part);
      const bool causal = record.stack == "decoder" && record.part == "self_attention";
      expect_scores_give_weights({trace, record.stack, record.layer, record.part}, causal);
    }
  }
}

// Follows the residual stream of a stack from the embedding to the stack's output.
void expect_stream(const Trace& trace, const AnyModel& model, const std::string& stack) {
  const std::string config = model.model().config_json();
  const auto says = [&](const char* text) { return config.find(text) != std::string::npos; };
  const bool pre = says("\"norm_placement\": \"pre\"") || says("\"norm_placement\":\"pre\""),
             rms = says("\"norm\": \"rms\"") || says("\"norm\":\"rms\"");
  const auto width = static_cast<std::size_t>(trace.find(Tap::embedding, stack, -1)->shape[1]);
  const TapRecord *tokens = trace.find(Tap::token_embedding, stack, -1),
                  *positions = trace.find(Tap::position, stack, -1);
  ASSERT_NE(tokens, nullptr);
  Values stream = trace.find(Tap::embedding, stack, -1)->values;
  Values embedded =
      positions != nullptr ? sum_of(tokens->values, positions->values) : tokens->values;
  if (model.model().family() == "bert" && !pre) embedded = normalized(embedded, width, rms);
  EXPECT_LE(largest_difference_of(embedded, stream), 1e-5);
  for (int layer = 0; layer < 2; ++layer) {
    for (const char* part : {"self_attention", "cross_attention", "feed_forward"}) {
      const Place at(trace, stack, layer, part);
      if (at.find(Tap::residual_sum) == nullptr) continue;
      SCOPED_TRACE(stack + " " + std::to_string(layer) + " " + part);
      const bool is_attention = std::string_view(part) != "feed_forward";
      const std::string name = stack + ".layers." + std::to_string(layer) + "." + part +
                               (is_attention ? ".output" : ".down");
      const TapRecord& branch = at[is_attention ? Tap::attention_output : Tap::feed_forward];
      const TapRecord& inside =
          at[is_attention ? Tap::attention_context : Tap::feed_forward_hidden];
      EXPECT_LE(largest_difference_of(linear_of(model.parameters(), name, inside), branch.values),
                4e-5);
      const Values& sum = at[Tap::residual_sum].values;
      EXPECT_LE(largest_difference_of(sum_of(stream, branch.values), sum), 1e-5);
      const Values& normed = at[Tap::norm_output].values;
      EXPECT_LE(largest_difference_of(normalized(pre ? stream : sum, width, rms), normed), 3e-5);
      stream = pre ? sum : normed;
    }
    EXPECT_LE(largest_difference_of(trace.find(Tap::layer_output, stack, layer)->values, stream),
              1e-6);
  }
  if (pre) stream = normalized(stream, width, rms);
  Values out = trace.find(Tap::stack_output, stack, -1)->values;
  // T5 divides the decoder's output by √C.
  const double factor = double{out[0]} / double{stream[0]};
  for (float& value : stream) value = static_cast<float>(value * factor);
  EXPECT_LE(largest_difference_of(out, stream), 4e-5);
}

TEST_P(TracedModel, SubLayersAddUpToTheStacksOutput) {
  if (GetParam() == "rnn") GTEST_SKIP() << "a recurrent model has no residual stream";
  CpuContext context({.threads = 2});
  for (const NamedModel& named : models_of(GetParam())) {
    SCOPED_TRACE(named.name);
    const AnyModel model(context, named);
    Trace trace;
    {
      const TraceScope scope(context, trace);
      model.scores(pairs_of({7, 3}, {5, 4}, 37));
    }
    for (const char* stack : {"encoder", "decoder"}) {
      if (trace.find(Tap::embedding, stack, -1) != nullptr) expect_stream(trace, model, stack);
    }
  }
}

// Row `row` of a tap.
Values row_of(const TapRecord& record, std::size_t row) {
  const auto width = static_cast<std::size_t>(record.shape[1]);
  const auto begin = record.values.begin() + static_cast<std::ptrdiff_t>(row * width);
  return {begin, begin + static_cast<std::ptrdiff_t>(width)};
}

// The numbers of one query in a tap of scores or weights, for all heads.
Values query_of(const TapRecord& record, std::size_t query, std::size_t keys) {
  Values values;
  const auto queries = static_cast<std::size_t>(record.lengths[0]),
             columns = static_cast<std::size_t>(record.key_lengths[0]);
  for (std::size_t h = 0; h < static_cast<std::size_t>(record.heads); ++h) {
    const auto begin =
        record.values.begin() + static_cast<std::ptrdiff_t>((h * queries + query) * columns);
    values.insert(values.end(), begin, begin + static_cast<std::ptrdiff_t>(keys));
  }
  return values;
}

TEST_P(TracedModel, StepsOfASearchHaveTheValuesOfTheWholeSentence) {
  CpuContext context({.threads = 2});
  for (const NamedModel& named : models_of(GetParam())) {
    const AnyModel model(context, named);
    if (!model.generates()) GTEST_SKIP() << "the family does not generate";
    SCOPED_TRACE(named.name);
    const std::vector<Tokens> sources = sentences_of({5}, 37, 1);
    const Tokens prefix{9, 4};
    Trace steps, whole;
    Tokens found;
    {
      const TraceScope scope(context, steps);
      auto searcher = model.searcher({.beam_size = 1, .max_length = 6, .max_repeats = 0});
      found = searcher({.source = model.source(sources),
                        .prefixes = std::span(&prefix, 1),
                        .tokens = {.start = model.has_source() ? kTokens.start : kNoToken}})[0][0]
                  .tokens;
    }
    {
      const TraceScope scope(context, whole);
      model.scores({sources, {found}});
    }
    const std::size_t first = model.has_source() ? 1 : 0;  // the start token
    std::size_t compared = 0;
    for (const TapRecord& record : steps.records()) {
      if (record.step < 0) continue;
      SCOPED_TRACE(std::string(name_of(record.tap)) + " of " + record.stack + " " +
                   std::to_string(record.layer) + " " + record.part + ", step " +
                   std::to_string(record.step));
      const TapRecord* expected = whole.find(record.tap, record.stack, record.layer, record.part);
      ASSERT_NE(expected, nullptr);
      EXPECT_EQ(record.sentences, std::vector<std::int32_t>{0});
      EXPECT_EQ(record.hypotheses, std::vector<std::int32_t>{0});
      const std::size_t rows = static_cast<std::size_t>(record.lengths[0]);
      EXPECT_EQ(rows, record.step == 0 ? first + prefix.size() : 1);
      const std::size_t begin =
          record.step == 0 ? 0 : first + prefix.size() + static_cast<std::size_t>(record.step) - 1;
      for (std::size_t i = 0; i < rows; ++i, ++compared) {
        if (record.heads == 0) {
          EXPECT_LE(largest_difference_of(row_of(record, i), row_of(*expected, begin + i)), 3e-5);
          continue;
        }
        const auto keys = static_cast<std::size_t>(record.key_lengths[0]);
        EXPECT_LE(
            largest_difference_of(query_of(record, i, keys), query_of(*expected, begin + i, keys)),
            3e-5);
      }
    }
    EXPECT_GT(compared, 0u);
  }
}

TEST_P(TracedModel, AStepNamesItsSentencesAndHypotheses) {
  CpuContext context({.threads = 2});
  for (const NamedModel& named : models_of(GetParam())) {
    const AnyModel model(context, named);
    if (!model.generates()) GTEST_SKIP() << "the family does not generate";
    SCOPED_TRACE(named.name);
    const std::vector<Tokens> sources = sentences_of({5, 3}, 37, 1), prefixes{{9}, {4}};
    Trace trace({Tap::attention_weights, Tap::layer_output});
    {
      const TraceScope scope(context, trace);
      auto searcher = model.searcher({.beam_size = 3, .max_length = 4, .max_repeats = 0});
      searcher({.source = model.source(sources),
                .prefixes = prefixes,
                .tokens = {.start = model.has_source() ? kTokens.start : kNoToken}});
    }
    const TapRecord *first = trace.find(Tap::layer_output, "decoder", 0, "", 0),
                    *second = trace.find(Tap::layer_output, "decoder", 0, "", 1);
    ASSERT_TRUE(first != nullptr && second != nullptr);
    EXPECT_EQ(first->sentences, (std::vector<std::int32_t>{0, 1}));
    EXPECT_EQ(second->sentences, (std::vector<std::int32_t>{0, 0, 0, 1, 1, 1}));
    EXPECT_EQ(second->hypotheses, (std::vector<std::int32_t>{0, 1, 2, 0, 1, 2}));
    EXPECT_EQ(second->shape[0], 6);
  }
}

// d loss / d weights = d context · value, and d context = Wᵀ d output, whose sum over all rows is
// the gradient of the output's bias. So the gradients of the weights, summed over the queries, are
// known from the gradient of that bias.
TEST_P(TracedModel, GradientsOfTheWeightsFollowFromThoseOfTheParameters) {
  if (GetParam() == "rnn") GTEST_SKIP() << "its attention has no projection with a bias";
  CpuContext context({.threads = 1});
  for (const NamedModel& named : models_of(GetParam())) {
    SCOPED_TRACE(named.name);
    const AnyModel model(context, named, {}, {.gradients = true});
    const Sentences sentences = pairs_of({6}, {5}, 37);
    Trace trace;
    {
      const TraceScope scope(context, trace);
      Tape tape(context);
      tape.backward(model.loss(sentences, {}).total);
    }
    std::size_t checked = 0;
    for (const TapRecord& record : trace.records()) {
      if (record.tap != Tap::weight_gradient) continue;
      const Place at(trace, record.stack, record.layer, record.part);
      const std::string name =
          record.stack + ".layers." + std::to_string(record.layer) + "." + record.part + ".output";
      const nn::ParameterEntry* bias = model.parameters().find(name + ".bias");
      if (bias == nullptr) continue;
      SCOPED_TRACE(name);
      const nn::ParameterEntry& weight = *model.parameters().find(name + ".weight");
      const Values w = to_host<float>(model.parameters().weight(weight)),
                   d_bias = to_host<float>(
                       model.parameters().gradients().flat_slice(bias->offset, bias->shape));
      const auto inputs = static_cast<std::size_t>(weight.shape[1]);
      std::vector<double> d_context(inputs, 0.0);
      for (std::size_t i = 0; i < w.size(); ++i)
        d_context[i % inputs] += double{w[i]} * d_bias[i / inputs];
      const TapRecord& value = at[Tap::value];
      const auto heads = static_cast<std::size_t>(record.heads), head_width = inputs / heads,
                 value_width = static_cast<std::size_t>(value.shape[1]),
                 group = inputs / value_width,
                 queries = static_cast<std::size_t>(record.lengths[0]),
                 keys = static_cast<std::size_t>(record.key_lengths[0]);
      for (std::size_t h = 0; h < heads; ++h) {
        for (std::size_t j = 0; j < keys; ++j) {
          double sum = 0, expected = 0;
          for (std::size_t i = 0; i < queries; ++i) {
            sum += double{record.values[(h * queries + i) * keys + j]};
          }
          for (std::size_t d = 0; d < head_width; ++d) {
            expected += d_context[h * head_width + d] *
                        double{value.values[j * value_width + h / group * head_width + d]};
          }
          EXPECT_NEAR(sum, expected, 2e-4 * std::max(1.0, std::fabs(expected)));
        }
      }
      ++checked;
    }
    if (model.parameters().find("decoder.layers.0.self_attention.output.bias") != nullptr) {
      EXPECT_GT(checked, 0u);
    }
  }
}

TEST_P(TracedModel, GradientsOfTheWeightsNeedNoGradientsOfParameters) {
  CpuContext context({.threads = 1});
  for (const NamedModel& named : models_of(GetParam())) {
    SCOPED_TRACE(named.name);
    const AnyModel model(context, named), trained(context, named, {}, {.gradients = true});
    const Sentences sentences = pairs_of({6}, {5}, 37);
    const auto gradients = [&](const AnyModel& of) {
      Trace trace({Tap::weight_gradient});
      const TraceScope scope(context, trace);
      Tape tape(context);
      const VocabularyLoss loss = of.loss(sentences, {});
      if (loss.total.needs_gradient()) tape.backward(loss.total);
      Values all;
      for (const TapRecord& record : trace.records()) {
        all.insert(all.end(), record.values.begin(), record.values.end());
      }
      return all;
    };
    EXPECT_EQ(largest_difference_of(gradients(model), gradients(trained)), 0);
  }
}

FOR_EVERY_FAMILY(TracedModel);

}  // namespace
}  // namespace nunchi::testing
