// A run beside other programs gives the bits of a run on quiet cores.
#include "nunchi/device/cpu/busy_cores.h"

#include "nunchi/kernels/product.h"
#include "tests/training/tiny_run.h"

namespace nunchi::testing {
namespace {

std::vector<float> trained_weights(bool busy) {
  const TemporaryFolder folder;
  TrainConfig config = tiny_config();
  TransformerConfig model = small_config(kTinyVocabulary);
  model.width = 64;
  model.feed_forward = 512;
  config.model = model;
  config.training.batch_tokens = 400;
  TinyRun run(folder.path(), RunFolder::StartMode::fresh, config, 2);
  auto& context = dynamic_cast<CpuContext&>(run.context());
  auto waited = std::make_shared<std::chrono::nanoseconds>();
  context.busy_cores().set_wait_clock([waited, busy] {
    return *waited += busy ? std::chrono::seconds(1) : std::chrono::seconds(0);
  });
  while (busy && !context.busy_cores().detected()) context.busy_cores().poll();
  run.train();
  EXPECT_EQ(context.busy_cores().detected(), busy);
  return run.weights();
}

TEST(BusyCoresTraining, GivesTheSameBits) {
  EXPECT_TRUE(same_bits(trained_weights(false), trained_weights(true)));
}

}  // namespace
}  // namespace nunchi::testing
