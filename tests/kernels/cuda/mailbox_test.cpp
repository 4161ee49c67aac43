// Letters from the device to the host.
#include "nunchi/kernels/search.h"
#include "tests/kernels/cuda/compare.h"

namespace nunchi::testing {
namespace {

// A step without a unit: all that it does is to say so.
void step_of_nobody(auto& context, std::int64_t generated, const Tensor& counts,
                    std::int64_t* letters) {
  kernels::run(context, kernels::BeamStep<float>{.units = 0,
                                                 .generated = generated,
                                                 .active = counts.data<std::int32_t>(),
                                                 .generated_next = counts.data<std::int32_t>() + 1,
                                                 .letters = letters});
}

TEST(CudaMailbox, EveryLetterArrivesWhileTheDeviceGoesOn) {
  SKIP_WITHOUT_GPU();
  CudaContext cuda;
  const auto mailbox = cuda.make_mailbox();
  ASSERT_NE(mailbox, nullptr);
  const Tensor counts = from_host(cuda, std::vector<std::int32_t>{7, 7}, {2});
  constexpr std::int32_t kAhead = ContextBase::Mailbox::kBoxes / 2;
  for (std::int32_t key = 1; key <= 500; ++key) {
    step_of_nobody(cuda, key - 1, counts, mailbox->boxes());
    if (key > kAhead) {
      EXPECT_EQ(mailbox->wait(key - kAhead), 0);
    }
  }
  EXPECT_EQ(to_host<std::int32_t>(counts), (std::vector<std::int32_t>{0, 500}));
}

TEST(CudaMailbox, NobodyWaitsForALetterThatDoesNotCome) {
  SKIP_WITHOUT_GPU();
  CudaContext cuda;
  const auto mailbox = cuda.make_mailbox();
  EXPECT_THROW(mailbox->wait(3), Error);
  const Tensor counts = zeros(cuda, DType::i32, {2});
  step_of_nobody(cuda, 2, counts, mailbox->boxes());
  EXPECT_EQ(mailbox->wait(3), 0);
  EXPECT_THROW(mailbox->wait(3 + ContextBase::Mailbox::kBoxes), Error);  // the same box
  mailbox->clear();
  EXPECT_THROW(mailbox->wait(3), Error);
}

}  // namespace
}  // namespace nunchi::testing
