#include "nunchi/autograd/tape.h"

#include "tests/support.h"

namespace nunchi::testing {
namespace {

using Names = std::vector<std::string>;

class TapeTest : public ::testing::Test {
 protected:
  Tensor tensor(float value) { return from_host(context_, std::vector<float>(2, value), {1, 2}); }
  Variable variable(float value) { return Variable(tensor(value), true); }
  static std::vector<float> values(const Tensor& tensor) { return to_host<float>(tensor); }

  // An operation that appends its name to ran_ in the backward pass and passes its gradient on to
  // each input.
  Variable operation(const char* name, std::initializer_list<Variable> inputs) {
    const int count = static_cast<int>(inputs.size());
    return record(name, tensor(0), inputs, [this, name, count](Gradients& d) {
      ran_.emplace_back(name);
      for (int i = 0; i < count; ++i) d.give(i, d.output());
    });
  }

  CpuContext context_{CpuOptions{.threads = 1}};
  Names ran_;  // operations, in the order of the backward pass
};

TEST_F(TapeTest, TheBackwardPassRunsOperationsInReverse) {
  Tape tape(context_);
  const Variable x = variable(1);
  const Variable y = operation("second", {operation("first", {x})});
  const Variable z = operation("third", {y});
  EXPECT_EQ(tape.size(), 3u);
  tape.backward(z, tensor(5));
  EXPECT_EQ(ran_, (Names{"third", "second", "first"}));
  EXPECT_EQ(values(x.gradient()), (std::vector<float>{5, 5}));
  EXPECT_EQ(tape.size(), 0u);
}

TEST_F(TapeTest, EachOperationDropsItsSavedTensorsBeforeTheNextRuns) {
  Tape tape(context_);
  const Variable x = variable(1);
  const std::size_t before = context_.arena().in_use();
  std::vector<std::size_t> in_use;
  const auto saving = [&](const Variable& input) {
    const Tensor saved = Tensor::empty(context_, DType::f32, {1, 1024});
    return record("saving", tensor(0), {input}, [&in_use, saved](Gradients& d) {
      in_use.push_back(saved.context().arena().in_use());
      d.give(0, d.output());
    });
  };
  {
    const Variable y = saving(saving(x));
    tape.backward(y, tensor(1));
  }
  ASSERT_EQ(in_use.size(), 2u);
  EXPECT_GE(in_use[0], in_use[1] + 4096);
  EXPECT_LT(context_.arena().in_use(), before + 4096);
}

TEST_F(TapeTest, AnOperationThatTheLossDoesNotDependOnDoesNotRun) {
  Tape tape(context_);
  const Variable x = variable(1), other = variable(2);
  const Variable y = operation("used", {x});
  operation("unused", {other});
  tape.backward(y, tensor(1));
  EXPECT_EQ(ran_, Names{"used"});
  EXPECT_FALSE(other.gradient().defined());
}

TEST_F(TapeTest, NothingIsRecordedIfNoInputNeedsAGradient) {
  Tape tape(context_);
  const Variable constant(tensor(1));
  const Variable y = operation("constant", {constant});
  EXPECT_FALSE(y.needs_gradient());
  EXPECT_EQ(tape.size(), 0u);
  EXPECT_NE(error_of([&] { tape.backward(y, tensor(1)); }).find("no recorded operation"),
            std::string::npos);
}

TEST_F(TapeTest, AnUnwantedGradientGoesToScratchMemory) {
  Tape tape(context_);
  const Variable x = variable(1), constant(tensor(3));
  const Variable y = record("mixed", tensor(0), {x, constant, Variable()}, [&](Gradients& d) {
    EXPECT_TRUE(d.wanted(0));
    EXPECT_FALSE(d.wanted(1));
    EXPECT_FALSE(d.wanted(2));  // undefined
    const GradientTarget scratch = d.target(1);
    EXPECT_FALSE(scratch.accumulate);
    EXPECT_FALSE(scratch.tensor.same_memory(constant.value()));
    d.give(0, d.output());
    d.give(1, d.output());
  });
  tape.backward(y, tensor(2));
  EXPECT_EQ(values(x.gradient()), (std::vector<float>{2, 2}));
  EXPECT_FALSE(constant.gradient().defined());
}

TEST_F(TapeTest, GradientsOfAVariableThatIsUsedTwiceAddUp) {
  Tape tape(context_);
  const Variable x = variable(1);
  const Variable y = operation("sum", {operation("left", {x}), operation("right", {x})});
  tape.backward(y, tensor(3));
  EXPECT_EQ(values(x.gradient()), (std::vector<float>{6, 6}));
}

TEST_F(TapeTest, AParameterKeepsItsGradientFromStepToStep) {
  Variable weight(Tensor(), true);
  weight.bind(tensor(1), tensor(10));
  for (int step = 0; step < 2; ++step) {
    Tape tape(context_);
    tape.backward(operation("use", {weight}), tensor(1));
  }
  EXPECT_EQ(values(weight.gradient()), (std::vector<float>{12, 12}));
}

TEST_F(TapeTest, ColumnsThatNoViewWroteToGetAZeroGradient) {
  Tape tape(context_);
  const Variable x = variable(1);
  const Variable whole = operation("whole", {x});
  const Variable y = record("first_column", from_host(context_, std::vector<float>{0}, {1, 1}),
                            {whole.columns(0, 1)}, [](Gradients& d) { d.give(0, d.output()); });
  tape.backward(y, from_host(context_, std::vector<float>{7}, {1, 1}));
  EXPECT_EQ(values(x.gradient()), (std::vector<float>{7, 0}));
}

TEST_F(TapeTest, TapesDoNotNest) {
  {
    const Tape tape(context_);
    EXPECT_NE(error_of([&] { Tape inner(context_); }).find("recording already"), std::string::npos);
    EXPECT_EQ(context_.tape(), &tape);
  }
  EXPECT_EQ(context_.tape(), nullptr);
  const Tape again(context_);
}

TEST_F(TapeTest, NothingIsRecordedDuringAPause) {
  Tape tape(context_);
  const Variable x = variable(1);
  {
    const TapePause pause(context_);
    EXPECT_FALSE(operation("paused", {x}).needs_gradient());
    const Tape second(context_);  // a paused context may record on another tape
    EXPECT_TRUE(operation("recorded", {x}).needs_gradient());
  }
  EXPECT_EQ(context_.tape(), &tape);
  EXPECT_EQ(tape.size(), 0u);
}

TEST_F(TapeTest, TheContextOfTheOutputsDecidesWhetherToRecord) {
  CpuContext other({.threads = 1});
  const Tape tape(context_);
  // A weight of a context that does not record.
  const Variable weight(from_host(other, std::vector<float>{1, 1}, {1, 2}), true);
  EXPECT_TRUE(operation("here", {weight}).needs_gradient());
  EXPECT_EQ(tape.size(), 1u);
}

}  // namespace
}  // namespace nunchi::testing
