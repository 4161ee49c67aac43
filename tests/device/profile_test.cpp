#include "nunchi/device/profile.h"

#include "nunchi/kernels/memory.h"
#include "tests/support.h"

namespace nunchi::testing {
namespace {

// The profile entry of a kernel after `runs` runs.
ProfileEntry entry_of(Profile::Kind kind, int runs) {
  CpuContext context({.threads = 1});
  std::vector<float> numbers(1 << 16);
  Profile profile(kind);
  context.set_profile(&profile);
  const kernels::Fill<float> fill{
      .count = static_cast<std::int64_t>(numbers.size()), .value = 1, .out = numbers.data()};
  for (int i = 0; i < runs; ++i) kernels::run(context, fill);
  EXPECT_EQ(numbers.back(), 1);
  EXPECT_EQ(profile.entries().size(), 1u);
  return profile.entries().at(fill.name());
}

TEST(Profile, MeasuresTimesAndWork) {
  const ProfileEntry entry = entry_of(Profile::Kind::times, 20);
  EXPECT_EQ(entry.calls, 20);
  EXPECT_GT(entry.seconds, 0);
  EXPECT_GE(entry.work.bytes, 20.0 * (1 << 16) * sizeof(float));
}

TEST(Profile, OfWorkOnlyMeasuresNoTimes) {
  const ProfileEntry entry = entry_of(Profile::Kind::work, 3);
  EXPECT_EQ(entry.calls, 3);
  EXPECT_EQ(entry.seconds, 0);
  EXPECT_EQ(entry.work.bytes, entry_of(Profile::Kind::times, 3).work.bytes);
}

}  // namespace
}  // namespace nunchi::testing
