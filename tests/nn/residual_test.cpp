#include "nunchi/nn/residual.h"

#include "nunchi/nn/linear.h"
#include "tests/support.h"

namespace nunchi::testing {
namespace {

constexpr std::int64_t kWidth = 16;

class ResidualTest : public ::testing::TestWithParam<StreamRows> {
 protected:
  // Two sub-layers and the end of their stack.
  struct Stack {
    Stack(ContextBase& context, nn::NormPlacement placement)
        : Stack(context, nn::Residual::Options{.placement = placement}) {}
    Stack(ContextBase& context, nn::Residual::Options options)
        : first(parameters, "first", with_width(options)),
          second(parameters, "second", with_width(options)),
          end(parameters, "end", with_width(options)),
          f(parameters, "f", {.inputs = kWidth, .outputs = kWidth}),
          g(parameters, "g", {.inputs = kWidth, .outputs = kWidth}) {
      parameters.allocate(context, {});
      parameters.initialize(1);
    }
    static nn::Residual::Options with_width(nn::Residual::Options options) {
      options.width = kWidth;
      return options;
    }
    // norm(x) with the parameters of the norm called `name`.
    Variable norm(const std::string& name, const Variable& x, const Ragged& batch) const {
      const Norm norm{.gamma = parameters.find(name + ".norm.weight")->variable,
                      .beta = parameters.find(name + ".norm.bias")->variable};
      return residual_norm(x, {}, batch, norm).out;
    }
    nn::Parameters parameters;
    nn::Residual first, second;
    nn::StreamEnd end;
    nn::Linear f, g;
  };

  ResidualStream start() const { return {.kind = GetParam(), .value = x_}; }
  ResidualStream run(const Stack& stack) const {
    ResidualStream stream = stack.first(
        start(), in_, {}, [&](LazyNorm& x) { return Branch(x.rows(), stack.f.parameters()); });
    return stack.second(std::move(stream), in_, {},
                        [&](LazyNorm& x) { return Branch(stack.g(x)); });
  }
  std::vector<float> real_rows(const Variable& x) const {
    return to_host<float>(x.value().rows(0, batch_.rows));
  }
  Variable sum(const Variable& a, const Variable& b) {
    std::vector<float> values = to_host<float>(a.value());
    const std::vector<float> addends = to_host<float>(b.value());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += addends[i];
    return Variable(from_host(context_, values, a.value().shape()));
  }

  CpuContext context_{CpuOptions{.threads = 1}};
  const Ragged batch_ = make_ragged(context_, std::vector<std::int32_t>{4, 7, 5});
  const nn::LayerInput in_{.rows = batch_};
  const Variable x_{random_tensor<float>(context_, {batch_.capacity, kWidth}, 1)};
};

TEST_P(ResidualTest, PostNormNormalisesEachSum) {
  const Stack stack(context_, nn::NormPlacement::post);
  const Variable y = stack.norm("first", sum(x_, stack.f(x_)), batch_);
  const Variable z = stack.norm("second", sum(y, stack.g(y)), batch_);
  EXPECT_LE(largest_difference(real_rows(stack.end(run(stack), batch_)), real_rows(z)), 1e-5);
}

TEST_P(ResidualTest, PreNormNormalisesTheInputsOfSublayersAndTheFinalSum) {
  const Stack stack(context_, nn::NormPlacement::pre);
  const Variable y = sum(x_, stack.f(stack.norm("first", x_, batch_)));
  const Variable z = sum(y, stack.g(stack.norm("second", y, batch_)));
  EXPECT_LE(largest_difference(real_rows(stack.end(run(stack), batch_)),
                               real_rows(stack.norm("end", z, batch_))),
            1e-5);
}

TEST_P(ResidualTest, WithoutTheResidualConnectionOnlyTheBranchGoesOn) {
  const Stack post(context_, {.placement = nn::NormPlacement::post, .add_input = false});
  const Variable y = post.norm("first", post.f(x_), batch_);
  EXPECT_LE(largest_difference(real_rows(post.end(run(post), batch_)),
                               real_rows(post.norm("second", post.g(y), batch_))),
            1e-5);
  const Stack pre(context_, {.placement = nn::NormPlacement::pre, .add_input = false});
  const Variable z = pre.f(pre.norm("first", x_, batch_));
  EXPECT_LE(
      largest_difference(real_rows(pre.end(run(pre), batch_)),
                         real_rows(pre.norm("end", pre.g(pre.norm("second", z, batch_)), batch_))),
      1e-5);
}

TEST_P(ResidualTest, WithoutNormsThereAreSumsAndNoParameters) {
  for (const nn::NormPlacement placement : {nn::NormPlacement::post, nn::NormPlacement::pre}) {
    const Stack stack(context_, {.placement = placement, .normalize = false});
    EXPECT_EQ(stack.parameters.find("first.norm.weight"), nullptr);
    EXPECT_EQ(stack.parameters.find("end.norm.weight"), nullptr);
    const Variable y = sum(x_, stack.f(x_));
    EXPECT_LE(
        largest_difference(real_rows(stack.end(run(stack), batch_)), real_rows(sum(y, stack.g(y)))),
        1e-5);
    const Stack neither(context_, {.placement = placement, .add_input = false, .normalize = false});
    EXPECT_LE(largest_difference(real_rows(neither.end(run(neither), batch_)),
                                 real_rows(neither.g(neither.f(x_)))),
              1e-5);
  }
}

TEST_P(ResidualTest, ASublayerLeavesItsBranchPending) {
  for (const nn::NormPlacement placement : {nn::NormPlacement::post, nn::NormPlacement::pre}) {
    const Stack stack(context_, placement);
    const ResidualStream stream = run(stack);
    EXPECT_EQ(stream.kind, GetParam());
    EXPECT_TRUE(stream.branch.has_value());
    EXPECT_EQ(stream.norm.has_value(), placement == nn::NormPlacement::post);
  }
}

TEST_P(ResidualTest, OnlyPreNormHasANormAtTheEnd) {
  const Stack post(context_, nn::NormPlacement::post), pre(context_, nn::NormPlacement::pre);
  EXPECT_EQ(post.parameters.find("end.norm.weight"), nullptr);
  EXPECT_NE(pre.parameters.find("end.norm.weight"), nullptr);
  EXPECT_TRUE(post.end(start(), batch_).value().same_memory(x_.value()));
}

INSTANTIATE_TEST_SUITE_P(AllStreamRows, ResidualTest,
                         ::testing::Values(StreamRows::sentences, StreamRows::decode_step),
                         [](const auto& info) {
                           return info.param == StreamRows::sentences ? "Sentences" : "DecodeStep";
                         });

}  // namespace
}  // namespace nunchi::testing
