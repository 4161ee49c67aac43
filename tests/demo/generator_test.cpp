#include "nunchi/demo/generator.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

using demo::ParsedTemplate;
using demo::Template;

TEST(DemoTemplates, GiveEnoughSentences) {
  EXPECT_GE(DemoGenerator::template_count(), 30);
  EXPECT_GE(DemoGenerator::possible_sentences(), 100'000'000u);
  for (const Template& patterns : demo::templates()) {
    // A small number of sentences could be memorised.
    EXPECT_GE(ParsedTemplate(patterns).sentence_count(), 4'000u) << patterns.korean;
  }
}

TEST(DemoTemplates, CountTheirSentences) {
  const ParsedTemplate parsed({"{weekday}부터 {weekday2}까지", "from {weekday} to {weekday2}"});
  EXPECT_EQ(parsed.sentence_count(), 7u * 6u);
}

TEST(DemoTemplates, FillInParticlesAndArticles) {
  const ParsedTemplate parsed({"{city}[으로/로] {item}[을/를]", "{item}: [a/an] {city}"});
  const std::array<int, 2> seoul_and_umbrella{0, 0};
  const demo::Rendering text = parsed.render(seoul_and_umbrella);
  EXPECT_EQ(text.korean, "서울로 우산을");
  EXPECT_EQ(text.english, "Umbrella: a Seoul");
}

TEST(DemoTemplates, LinkTheWordsOfTheirSlots) {
  const ParsedTemplate parsed({"오늘은 {city}행 {time}에 {item}[을/를]",
                               "today [a/an] {item} at {time} to {city}, please"});
  const int three_twenty = (15 * 60 + 20 - 6 * 60) / 5;
  const std::array<int, 3> values{0, three_twenty, 0};
  const demo::Rendering text = parsed.render(values);
  ASSERT_EQ(text.korean, "오늘은 서울행 오후 3시 20분에 우산을");
  ASSERT_EQ(text.english, "Today an umbrella at 3:20 PM to Seoul, please");
  const std::vector<WordLink> expected{{1, 7}, {3, 4}, {4, 4}, {2, 5}, {5, 2}};
  EXPECT_EQ(text.links, expected);
}

TEST(DemoTemplates, RefuseMalformedPatterns) {
  const std::vector<Template> malformed{
      {"서울", "Seoul"},
      {"{city", "{city}"},
      {"{citty}", "{citty}"},
      {"{city}", "Seoul"},
      {"서울", "{city}"},
      {"{city}", "{city} {spot}"},
      {"{city} {city}", "{city}"},
      {"{city}[을]", "{city}"},
      {"{city}[을/를", "{city}"},
      {"{city} {spot} {item} {day} {time}", "{city} {spot} {item} {day} {time}"},
  };
  for (const Template& patterns : malformed) {
    EXPECT_THROW(ParsedTemplate{patterns}, Error) << patterns.korean;
  }
}

TEST(DemoTemplates, ACombinationKeyDoesNotDependOnTheOrderOfSlots) {
  const std::array<int, 2> city_and_spot{demo::slot_kind("city"), demo::slot_kind("spot")};
  const std::array<int, 2> spot_and_city{city_and_spot[1], city_and_spot[0]};
  const std::array<int, 2> values{3, 5}, swapped{5, 3};
  EXPECT_EQ(demo::combination_key(city_and_spot, values),
            demo::combination_key(spot_and_city, swapped));
  EXPECT_NE(demo::combination_key(city_and_spot, values),
            demo::combination_key(city_and_spot, swapped));
}

TEST(DemoGenerator, IsAFunctionOfSeedAndIndex) {
  const DemoGenerator one(7), same(7), other(8);
  int differences = 0;
  for (std::uint64_t index = 100; index-- > 0;) {
    const DemoPair pair = one.at(index), again = same.at(index);
    EXPECT_EQ(pair.korean, again.korean);
    EXPECT_EQ(pair.english, again.english);
    EXPECT_EQ(pair.template_index, again.template_index);
    EXPECT_EQ(pair.combination, again.combination);
    differences += pair.korean != other.at(index).korean;
  }
  EXPECT_GT(differences, 95);
}

TEST(DemoGenerator, UsesEveryTemplate) {
  const DemoGenerator generator(1);
  std::vector<int> uses(DemoGenerator::template_count());
  for (std::uint64_t index = 0; index < 4'000; ++index) ++uses[generator.at(index).template_index];
  for (const int count : uses) EXPECT_GT(count, 40);  // about a hundred each
}

TEST(DemoGenerator, ASourceHasOneTargetAndATargetOneSource) {
  const DemoGenerator generator(3);
  std::unordered_map<std::string, std::string> to_english, to_korean;
  for (std::uint64_t index = 0; index < 200'000; ++index) {
    const DemoPair pair = generator.at(index);
    const auto [english, new_source] = to_english.emplace(pair.korean, pair.english);
    const auto [korean, new_target] = to_korean.emplace(pair.english, pair.korean);
    ASSERT_EQ(english->second, pair.english) << pair.korean;
    ASSERT_EQ(korean->second, pair.korean) << pair.english;
  }
}

TEST(DemoGenerator, WritesCleanSentences) {
  const DemoGenerator generator(5);
  for (std::uint64_t index = 0; index < 20'000; ++index) {
    const DemoPair pair = generator.at(index);
    for (const std::string& text : {pair.korean, pair.english}) {
      EXPECT_EQ(text.find_first_of("{}[]/\n"), std::string::npos) << text;
      EXPECT_EQ(text.find("  "), std::string::npos) << text;
    }
    const char first = pair.english.front();
    EXPECT_FALSE(first >= 'a' && first <= 'z') << pair.english;
  }
}

TEST(DemoData, HeldOutPairsAreNotInTraining) {
  const DemoData data = make_demo_data(11, 100'000, 6'000);
  ASSERT_EQ(data.training.size(), 100'000u);
  ASSERT_EQ(data.held_out.size(), 6'000u);
  std::unordered_set<std::string> sources, targets;
  std::unordered_set<std::uint64_t> combinations;
  for (const DemoPair& pair : data.training) {
    EXPECT_TRUE(sources.insert(pair.korean).second) << pair.korean;
    targets.insert(pair.english);
    combinations.insert(pair.combination);
  }
  std::unordered_set<std::string> held_out;
  std::unordered_set<int> templates;
  for (const DemoPair& pair : data.held_out) {
    EXPECT_FALSE(sources.contains(pair.korean)) << pair.korean;
    EXPECT_FALSE(targets.contains(pair.english)) << pair.english;
    EXPECT_FALSE(combinations.contains(pair.combination)) << pair.korean;
    EXPECT_TRUE(held_out.insert(pair.korean).second) << pair.korean;
    templates.insert(pair.template_index);
  }
  EXPECT_EQ(static_cast<int>(templates.size()), DemoGenerator::template_count());
}

TEST(DemoData, HeldOutPairsDoNotDependOnTheTrainingSize) {
  const DemoData little = make_demo_data(2, 10, 100), much = make_demo_data(2, 5'000, 100);
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(little.held_out[i].korean, much.held_out[i].korean);
  }
}

TEST(DemoData, CountsOutOfRangeAreRefused) {
  EXPECT_THROW(make_demo_data(1, -1, 10), UsageError);
  EXPECT_THROW(make_demo_data(1, 10, 10'000'001), UsageError);
  EXPECT_TRUE(make_demo_data(1, 0, 0).training.empty());
}

}  // namespace
}  // namespace nunchi
