#include "nunchi/device/arena.h"

#include <malloc.h>

#include "nunchi/autograd/tape.h"
#include "nunchi/training/optimizer.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

TEST(Arena, ReusesReleasedBlocksAndMergesNeighbours) {
  CpuContext context;
  Arena& arena = context.arena();
  std::byte* a = arena.allocate(1000);
  std::byte* b = arena.allocate(1000);
  std::byte* c = arena.allocate(1000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % 64, 0u);
  arena.release(a);
  arena.release(b);
  EXPECT_EQ(arena.allocate(2000), a) << "free neighbours must merge";
  arena.release(c);
  arena.release(a);
  EXPECT_EQ(arena.in_use(), 0u);
  EXPECT_EQ(arena.allocate(3000), a);
}

TEST(Arena, AnAbsurdSizeIsAnErrorWithAMessage) {
  CpuContext context;
  EXPECT_NE(error_of([&] { context.arena().allocate(std::size_t{1} << 50); }).find("out of memory"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              Tensor::empty(context, DType::f32, {std::int64_t{1} << 40, std::int64_t{1} << 40});
            }).find("too large"),
            std::string::npos);
}

TEST(Arena, BlocksOfZeroBytesHaveDifferentAddresses) {
  CpuContext context;
  std::byte* a = context.arena().allocate(0);
  std::byte* b = context.arena().allocate(0);
  EXPECT_NE(a, b);
}

// Batch sizes differ from step to step. After one step of each size, no step requests memory from
// the system.
TEST(TrainingStep, RequestsNoMemoryFromTheSystemAfterTheFirstOfEachSize) {
  CpuContext context({.threads = 2});
  TransformerConfig config = preset_of<TransformerConfig>("tiny", 500);
  const auto model = make_small<Transformer>(context, config, {.gradients = true});
  AdamOptimizer optimizer(model->parameters(), {.max_norm = 1});
  const std::vector<std::vector<std::int32_t>> lengths = {
      {30, 25, 31, 8}, {3, 2}, {60, 50, 55, 52, 12, 9}, {10, 11, 12, 13, 9, 8, 7}, {64}};
  const auto step = [&](std::size_t size_index, std::uint64_t number) {
    const PairBatch batch = pair_batch(context, sentences_of(lengths[size_index], 500, 1),
                                       sentences_of(lengths[size_index], 500, 2), 500);
    context.set_random_key({.seed = 1, .step = number});
    const ModeScope scope(context, Mode::training);
    Tape tape(context);
    tape.backward(model->loss(batch, {.smoothing = 0.1}).total);
    optimizer.step({.learning_rate = 1e-4, .tokens = static_cast<double>(batch.target.rows.rows)});
  };
  std::uint64_t number = 0;
  for (std::size_t size_index = 0; size_index < lengths.size(); ++size_index)
    step(size_index, ++number);
  const std::int64_t requests = context.arena().system_requests();
  const std::size_t in_use = context.arena().in_use();
  for (int round = 0; round < 4; ++round) {
    for (std::size_t size_index = 0; size_index < lengths.size(); ++size_index) {
      step((size_index * 3 + static_cast<std::size_t>(round)) % lengths.size(), ++number);
      EXPECT_EQ(context.arena().in_use(), in_use) << "a step must release all its memory";
    }
  }
  EXPECT_EQ(context.arena().system_requests(), requests);
}

}  // namespace
}  // namespace nunchi::testing
