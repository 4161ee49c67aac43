#include "nunchi/ops/residual_stream.h"

#include "nunchi/autograd/tape.h"
#include "nunchi/device/profile.h"
#include "nunchi/ops/activation.h"
#include "nunchi/ops/feed_forward.h"
#include "tests/support.h"

namespace nunchi::testing {
namespace {

class ResidualStreamTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kWidth = 24;

  ResidualStreamTest() { context_.set_random_key({.seed = 3, .step = 1}); }
  Variable rows(std::uint64_t seed, std::int64_t width = kWidth) {
    return Variable(random_tensor<float>(context_, {batch_.capacity, width}, seed));
  }
  Variable weight(const Shape& shape, std::uint64_t seed) {
    return Variable(random_tensor<float>(context_, shape, seed, 0.3), true);
  }
  Linear layer(std::int64_t outputs, std::int64_t inputs, std::uint64_t seed) {
    return {.weight = weight({outputs, inputs}, seed), .bias = weight({outputs}, seed + 1)};
  }
  ResidualStream stream(StreamRows kind, float dropout = 0) const {
    return {.kind = kind,
            .value = value_,
            .branch = PendingBranch{branch_, {.probability = dropout, .operation_id = 2}}};
  }
  static std::vector<float> host(const Variable& x) { return to_host<float>(x.value()); }
  // The number of times that f runs each kernel.
  std::map<std::string, std::int64_t> kernels_of(const auto& f) {
    Profile profile;
    context_.set_profile(&profile);
    f();
    context_.set_profile(nullptr);
    std::map<std::string, std::int64_t> calls;
    for (const auto& [name, entry] : profile.entries()) calls[name] = entry.calls;
    return calls;
  }

  CpuContext context_{CpuOptions{.threads = 1}};
  const Ragged batch_ = make_ragged(context_, std::vector<std::int32_t>{5, 9, 2});
  const Variable value_ = rows(1), branch_ = rows(2);
  const Norm norm_{.gamma = weight({kWidth}, 3), .beta = weight({kWidth}, 5)};
};

TEST_F(ResidualStreamTest, RowsAndSumEqualTheFusedPass) {
  const auto [sum, out] = residual_norm(value_, branch_, batch_, norm_);
  for (const StreamRows kind : {StreamRows::sentences, StreamRows::decode_step}) {
    LazyNorm x(stream(kind), &norm_, batch_);
    EXPECT_TRUE(same_bits(host(x.rows()), host(out)));
    EXPECT_TRUE(same_bits(host(x.sum()), host(sum)));
  }
}

TEST_F(ResidualStreamTest, TheNormIsComputedOnceAndOnlyWhenRead) {
  const auto calls = kernels_of([&] {
    LazyNorm unread(stream(StreamRows::sentences), &norm_, batch_);
    LazyNorm x(stream(StreamRows::sentences), &norm_, batch_);
    x.rows();
    x.sum();
    x.rows();
  });
  EXPECT_EQ(calls, (std::map<std::string, std::int64_t>{{"residual_norm", 1}}));
}

TEST_F(ResidualStreamTest, AStreamWithoutNormAndBranchIsReadAsItIs) {
  LazyNorm x({.value = value_}, nullptr, batch_);
  EXPECT_TRUE(x.rows().value().same_memory(value_.value()));
  EXPECT_TRUE(x.sum().value().same_memory(value_.value()));
}

TEST_F(ResidualStreamTest, AStreamsOwnNormTakesPrecedence) {
  const Norm other{.gamma = weight({kWidth}, 30), .beta = weight({kWidth}, 31)};
  ResidualStream with_norm = stream(StreamRows::sentences);
  with_norm.norm = other;
  LazyNorm x(with_norm, &norm_, batch_);
  EXPECT_TRUE(same_bits(host(x.rows()), host(residual_norm(value_, branch_, batch_, other).out)));
}

TEST_F(ResidualStreamTest, ADecodeStepFusesTheNormWithTheFirstProduct) {
  const Linear up = layer(40, kWidth, 7), other = layer(8, kWidth, 9);
  LazyNorm unfused(stream(StreamRows::sentences), &norm_, batch_);
  LazyNorm fused(stream(StreamRows::decode_step), &norm_, batch_);
  EXPECT_TRUE(fused.fuses_product());
  EXPECT_FALSE(unfused.fuses_product());
  Variable first, second;
  const auto calls = kernels_of([&] {
    first = linear(fused, up);
    second = linear(fused, other);  // the rows are computed by now
  });
  EXPECT_EQ(calls.at("norm_linear"), 1);
  EXPECT_EQ(calls.at("linear"), 1);
  EXPECT_EQ(calls.count("residual_norm"), 0u);
  EXPECT_TRUE(same_bits(host(first), host(linear(unfused, up))));
  EXPECT_TRUE(same_bits(host(second), host(linear(unfused, other))));
  EXPECT_TRUE(same_bits(host(fused.sum()), host(unfused.sum())));
}

TEST_F(ResidualStreamTest, NothingIsFusedWhileATapeRecordsOrDropoutIsActive) {
  {
    Tape tape(context_);
    LazyNorm x(stream(StreamRows::decode_step), &norm_, batch_);
    EXPECT_FALSE(x.fuses_product());
    EXPECT_TRUE(linear(x, layer(8, kWidth, 7)).needs_gradient());
    EXPECT_EQ(tape.size(), 2u);  // the norm and the product
  }
  const ModeScope scope(context_, Mode::training);
  EXPECT_FALSE(LazyNorm(stream(StreamRows::decode_step, 0.5f), &norm_, batch_).fuses_product());
  EXPECT_TRUE(LazyNorm(stream(StreamRows::decode_step), &norm_, batch_).fuses_product());
}

TEST_F(ResidualStreamTest, TheDropoutOfAPendingBranchIsActiveInTrainingMode) {
  const auto sum_of = [&](float dropout) {
    return host(LazyNorm(stream(StreamRows::sentences, dropout), &norm_, batch_).sum());
  };
  EXPECT_TRUE(same_bits(sum_of(0.5f), sum_of(0)));
  const ModeScope scope(context_, Mode::training);
  EXPECT_FALSE(same_bits(sum_of(0.5f), sum_of(0)));
}

TEST_F(ResidualStreamTest, ABranchComputesItsLastLayerOnce) {
  const Variable input = rows(11, 40);
  const Linear last = layer(kWidth, 40, 12);
  Branch branch(input, last);
  const auto calls = kernels_of([&] {
    branch.rows();
    branch.rows();
  });
  EXPECT_EQ(calls.at("linear"), 1);
  EXPECT_TRUE(same_bits(host(branch.rows()), host(linear(input, last))));
}

TEST_F(ResidualStreamTest, OnTheCpuABranchStaysPending) {
  for (const StreamRows kind : {StreamRows::sentences, StreamRows::decode_step}) {
    const ResidualStream added =
        Branch(rows(11, 40), layer(kWidth, 40, 12)).added_to(value_, kind, {});
    EXPECT_EQ(added.kind, kind);
    EXPECT_TRUE(added.value.value().same_memory(value_.value()));
    ASSERT_TRUE(added.branch.has_value());
    EXPECT_FALSE(added.norm.has_value());
  }
}

TEST_F(ResidualStreamTest, FusionDoesNotChangeTheBitsOfAFeedForwardBranch) {
  for (const ActivationKind kind : {ActivationKind::relu, ActivationKind::gelu_tanh}) {
    const FeedForward parameters{layer(40, kWidth, 7), layer(kWidth, 40, 9), kind};
    LazyNorm whole(stream(StreamRows::sentences), &norm_, batch_);
    LazyNorm step(stream(StreamRows::decode_step), &norm_, batch_);
    EXPECT_TRUE(same_bits(host(feed_forward(whole, parameters, batch_).rows()),
                          host(feed_forward(step, parameters, batch_).rows())));
  }
}

TEST_F(ResidualStreamTest, ATraceSeesTheSumBeforeANormAndTheRowsAfterOne) {
  const auto [sum, out] = residual_norm(value_, branch_, batch_, norm_);
  for (const StreamRows kind : {StreamRows::sentences, StreamRows::decode_step}) {
    const ResidualStream pre = stream(kind);
    EXPECT_TRUE(same_bits(host(Variable(peek(pre, batch_).sum)), host(sum)));
    EXPECT_TRUE(same_bits(host(Variable(peek(pre, batch_).rows)), host(sum)));
    ResidualStream post = stream(kind);
    post.norm = norm_;
    EXPECT_TRUE(same_bits(host(Variable(peek(post, batch_).sum)), host(sum)));
    EXPECT_TRUE(same_bits(host(Variable(peek(post, batch_).rows)), host(out)));
    EXPECT_TRUE(post.branch.has_value() && post.norm.has_value());  // still pending
  }
}

}  // namespace
}  // namespace nunchi::testing
