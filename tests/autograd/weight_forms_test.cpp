#include "nunchi/autograd/weight_forms.h"

#include <atomic>
#include <thread>

#include "tests/support.h"

namespace nunchi::testing {
namespace {

class WeightFormsTest : public ::testing::Test {
 protected:
  Tensor get(WeightForm form) {
    const auto make = [&] {
      ++made_;
      return FormedWeight{.values = zeros(context_, DType::f32, {4})};
    };
    return forms_.get(form, make).values;
  }

  CpuContext context_{CpuOptions{.threads = 1}};
  std::shared_ptr<std::uint64_t> version_ = std::make_shared<std::uint64_t>(1);
  WeightForms forms_{version_};
  std::atomic<int> made_ = 0;
};

TEST_F(WeightFormsTest, AFormIsComputedOncePerVersion) {
  const Tensor first = get(WeightForm::packed);
  EXPECT_TRUE(get(WeightForm::packed).same_memory(first));
  EXPECT_EQ(made_, 1);
  ++*version_;
  get(WeightForm::packed);
  EXPECT_EQ(made_, 2);
}

TEST_F(WeightFormsTest, EachFormHasItsOwnTensor) {
  const Tensor packed = get(WeightForm::packed);
  EXPECT_FALSE(get(WeightForm::packed_transposed).same_memory(packed));
  EXPECT_TRUE(get(WeightForm::packed).same_memory(packed));
  EXPECT_EQ(made_, 2);
}

TEST_F(WeightFormsTest, AnUndefinedFormIsCachedToo) {
  int calls = 0;
  for (int i = 0; i < 3; ++i) {
    forms_.get(WeightForm::packed, [&] {
      ++calls;
      return FormedWeight();
    });
  }
  EXPECT_EQ(calls, 1);
}

TEST_F(WeightFormsTest, TheInt8FormStaysWhenTheVersionChanges) {
  EXPECT_FALSE(forms_.int8().values.defined());
  forms_.replace_by_int8({.values = zeros(context_, DType::f32, {4})});
  ++*version_;
  EXPECT_TRUE(forms_.int8().values.defined());
}

TEST_F(WeightFormsTest, OnlyOneOfManyThreadsComputesAForm) {
  std::vector<Tensor> found(4);
  std::vector<std::thread> threads;
  for (Tensor& tensor : found) threads.emplace_back([&] { tensor = get(WeightForm::packed); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made_, 1);
  for (const Tensor& tensor : found) EXPECT_TRUE(tensor.same_memory(found[0]));
}

}  // namespace
}  // namespace nunchi::testing
