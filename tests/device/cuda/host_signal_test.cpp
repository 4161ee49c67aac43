#include "nunchi/device/host_signal.h"

#include "nunchi/kernels/search.h"
#include "tests/kernels/cuda/compare.h"

namespace nunchi::testing {
namespace {

// A search step without units: it only increments the step count and sends its message.
void empty_step(auto& context, const Tensor& counts, std::int64_t* signal) {
  kernels::run(context,
               kernels::BeamStep<float>{.units = 0,
                                        .counts = {.steps = counts.data<std::int32_t>() + 1},
                                        .active = counts.data<std::int32_t>(),
                                        .steps = counts.data<std::int32_t>() + 1,
                                        .signal = signal});
}

TEST(CudaHostSignal, EveryMessageArrivesWhileTheDeviceContinues) {
  SKIP_WITHOUT_GPU();
  CudaContext cuda;
  const auto signal = cuda.make_host_signal();
  ASSERT_NE(signal, nullptr);
  const Tensor counts = from_host(cuda, std::vector<std::int32_t>{7, 0}, {2});
  constexpr std::int32_t kStepsInFlight = HostSignal::kSlots / 2;
  for (std::int32_t step = 1; step <= 500; ++step) {
    empty_step(cuda, counts, signal->slots());
    if (step > kStepsInFlight) {
      EXPECT_EQ(signal->wait(step - kStepsInFlight), 0);
    }
  }
  EXPECT_EQ(to_host<std::int32_t>(counts), (std::vector<std::int32_t>{0, 500}));
}

TEST(CudaHostSignal, WaitingForAMessageThatNoStepSendsIsAnError) {
  SKIP_WITHOUT_GPU();
  CudaContext cuda;
  const auto signal = cuda.make_host_signal();
  EXPECT_THROW(signal->wait(3), Error);
  const Tensor counts = from_host(cuda, std::vector<std::int32_t>{0, 2}, {2});
  empty_step(cuda, counts, signal->slots());
  EXPECT_EQ(signal->wait(3), 0);
  EXPECT_THROW(signal->wait(3 + HostSignal::kSlots), Error);  // the same slot
  signal->clear();
  EXPECT_THROW(signal->wait(3), Error);
}

}  // namespace
}  // namespace nunchi::testing
