#include "nunchi/device/arena.h"

#include <malloc.h>

#include "nunchi/autograd/tape.h"
#include "nunchi/training/optimizer.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

TEST(Arena, ReusesWhatWasReleasedAndMergesNeighbours) {
  CpuContext context;
  Arena& arena = context.arena();
  std::byte* a = arena.allocate(1000);
  std::byte* b = arena.allocate(1000);
  std::byte* c = arena.allocate(1000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % 64, 0u);
  arena.release(a);
  arena.release(b);
  EXPECT_EQ(arena.allocate(2000), a) << "two neighbours are one block";
  arena.release(c);
  arena.release(a);
  EXPECT_EQ(arena.in_use(), 0u);
  EXPECT_EQ(arena.allocate(3000), a);
}

TEST(Arena, RefusesAnAbsurdSizeWithAWord) {
  CpuContext context;
  EXPECT_NE(error_of([&] { context.arena().allocate(std::size_t{1} << 50); }).find("out of memory"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              Tensor::empty(context, DType::f32, {std::int64_t{1} << 40, std::int64_t{1} << 40});
            }).find("does not fit"),
            std::string::npos);
}

TEST(Arena, ZeroBytesHaveAnAddressOfTheirOwn) {
  CpuContext context;
  std::byte* a = context.arena().allocate(0);
  std::byte* b = context.arena().allocate(0);
  EXPECT_NE(a, b);
}

// Batches differ from step to step; once each size was seen, the system is asked for nothing more.
TEST(TrainingStep, AsksTheSystemForNoMemoryAfterTheFirstOfItsSize) {
  CpuContext context({.threads = 2});
  TransformerConfig config = preset_of<TransformerConfig>("tiny", 500);
  const auto model = make_small<Transformer>(context, config, {.gradients = true});
  AdamOptimizer optimizer(model->parameters(), {.max_norm = 1});
  const std::vector<std::vector<std::int32_t>> lengths = {
      {30, 25, 31, 8}, {3, 2}, {60, 50, 55, 52, 12, 9}, {10, 11, 12, 13, 9, 8, 7}, {64}};
  const auto step = [&](std::size_t which, std::uint64_t number) {
    const PairBatch batch = pair_batch(context, sentences_of(lengths[which], 500, 1),
                                       sentences_of(lengths[which], 500, 2), 500);
    context.set_random({.seed = 1, .step = number});
    const ModeScope scope(context, Mode::training);
    Tape tape(context);
    tape.backward(model->loss(batch, {.smoothing = 0.1}).total);
    optimizer.step({.learning_rate = 1e-4, .tokens = static_cast<double>(batch.target.rows.rows)});
  };
  std::uint64_t number = 0;
  for (std::size_t which = 0; which < lengths.size(); ++which) step(which, ++number);
  const std::int64_t requests = context.arena().system_requests();
  const std::size_t in_use = context.arena().in_use();
  for (int round = 0; round < 4; ++round) {
    for (std::size_t which = 0; which < lengths.size(); ++which) {
      step((which * 3 + static_cast<std::size_t>(round)) % lengths.size(), ++number);
      EXPECT_EQ(context.arena().in_use(), in_use) << "a step leaves nothing behind";
    }
  }
  EXPECT_EQ(context.arena().system_requests(), requests);
}

}  // namespace
}  // namespace nunchi::testing
