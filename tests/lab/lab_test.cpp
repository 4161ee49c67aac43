#include "nunchi/lab/lab.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "nunchi/base/interrupted.h"
#include "nunchi/lab/draws.h"
#include "tests/errors.h"

namespace nunchi::testing {
namespace {

bool has_hangul(const std::string& text) {
  // U+AC00 to U+D7A3 are EA B0 80 to ED 9E A3 in UTF-8.
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0xEA && byte <= 0xED;
  });
}

TEST(Labs, HaveDifferentNamesAndTextsInBothLanguages) {
  std::set<std::string_view> names;
  for (const lab::Lab& lab : lab::labs()) {
    EXPECT_TRUE(names.insert(lab.name).second) << lab.name;
    EXPECT_FALSE(lab.note.empty()) << lab.name;
    for (const lab::Text* text : {&lab.question, &lab.claim, &lab.rule}) {
      EXPECT_FALSE(text->en.empty()) << lab.name;
      EXPECT_TRUE(has_hangul(text->ko)) << lab.name;
    }
    EXPECT_TRUE(lab.judge != nullptr && lab.run != nullptr) << lab.name;
  }
}

TEST(Labs, UnknownNameNamesTheNearest) {
  EXPECT_EQ(lab::find_lab("mask").name, "mask");
  EXPECT_TRUE(says(error_of([] { lab::find_lab("masks"); }), "did you mean 'mask'?"));
  EXPECT_TRUE(says(error_of([] { lab::find_lab("qqqqqq"); }), "see 'nunchi lab'"));
}

TEST(Figures, MissingFigureIsAnError) {
  lab::Figures figures;
  figures.set("a", 1);
  EXPECT_EQ(figures["a"], 1);
  EXPECT_TRUE(says(error_of([&] { figures["b"]; }), "there is no figure 'b'"));
}

TEST(LabOptions, EffortScalesCountsAndAStopInterrupts) {
  CpuContext context({.threads = 1});
  const std::atomic<bool> stop = true;
  const lab::Options options{.context = context, .effort = 0.01, .stop = &stop};
  EXPECT_EQ(options.scaled(1000), 10);
  EXPECT_EQ(options.scaled(10, 4), 4);
  EXPECT_THROW(options.report({"part", 0.5}), Interrupted);
}

TEST(Draws, DependOnSeedAndStreamAlone) {
  lab::Draws a(1, 2), same(1, 2), other_seed(2, 2), other_stream(1, 3);
  bool differs_by_seed = false, differs_by_stream = false;
  double mean = 0, square = 0;
  constexpr int kCount = 20000;
  for (int i = 0; i < kCount; ++i) {
    const std::uint32_t bits = a.bits();
    EXPECT_EQ(bits, same.bits());
    differs_by_seed |= bits != other_seed.bits();
    differs_by_stream |= bits != other_stream.bits();
  }
  EXPECT_TRUE(differs_by_seed && differs_by_stream);
  for (int i = 0; i < kCount; ++i) {
    const double x = a.normal();
    mean += x / kCount;
    square += x * x / kCount;
    const std::int32_t n = a.below(7);
    ASSERT_TRUE(n >= 0 && n < 7);
  }
  EXPECT_NEAR(mean, 0, 0.05);
  EXPECT_NEAR(square, 1, 0.05);
}

}  // namespace
}  // namespace nunchi::testing
