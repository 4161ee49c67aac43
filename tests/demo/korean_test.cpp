#include "nunchi/demo/korean.h"

#include <gtest/gtest.h>

#include "nunchi/base/error.h"
#include "nunchi/demo/english.h"

namespace nunchi::demo {
namespace {

TEST(Korean, AParticleFollowsTheFinalConsonant) {
  EXPECT_EQ(particle("사과", "을/를"), "를");
  EXPECT_EQ(particle("물", "을/를"), "을");
  EXPECT_EQ(particle("세 개", "을/를"), "를");
  EXPECT_EQ(particle("세 권", "을/를"), "을");
  EXPECT_EQ(particle("민수", "은/는"), "는");
  EXPECT_EQ(particle("서연", "은/는"), "은");
  EXPECT_EQ(particle("민수", "이/가"), "가");
  EXPECT_EQ(particle("한별", "이/가"), "이");
  EXPECT_EQ(particle("지훈", "과/와"), "과");
  EXPECT_EQ(particle("소라", "과/와"), "와");
}

TEST(Korean, RieulTakesRo) {
  EXPECT_EQ(particle("부산", "으로/로"), "으로");
  EXPECT_EQ(particle("서울", "으로/로"), "로");
  EXPECT_EQ(particle("대구", "으로/로"), "로");
  EXPECT_EQ(particle("서울", "을/를"), "을");  // everywhere else ㄹ is a consonant
}

TEST(Korean, RefusesParticlesAfterOtherCharacters) {
  for (const char* text : {"", "3", "Seoul", "한 ", "ㄹ", "é"}) {
    EXPECT_THROW(particle(text, "을/를"), Error) << text;
  }
  EXPECT_THROW(particle("서울", "을"), Error);
}

TEST(Korean, NativeNumbersBeforeCounters) {
  EXPECT_EQ(native_number(1), "한");
  EXPECT_EQ(native_number(3), "세");
  EXPECT_EQ(native_number(12), "열두");
  EXPECT_THROW(native_number(0), Error);
  EXPECT_THROW(native_number(13), Error);
  EXPECT_EQ(native_ordinal(1), "첫 번째");
  EXPECT_EQ(native_ordinal(2), "두 번째");
}

TEST(Korean, SinoNumbers) {
  EXPECT_EQ(sino_number(1), "일");
  EXPECT_EQ(sino_number(10), "십");
  EXPECT_EQ(sino_number(111), "백십일");
  EXPECT_EQ(sino_number(1'500), "천오백");
  EXPECT_EQ(sino_number(10'000), "만");
  EXPECT_EQ(sino_number(12'500), "만 이천오백");
  EXPECT_EQ(sino_number(30'006), "삼만 육");
  EXPECT_EQ(sino_number(99'000), "구만 구천");
  EXPECT_EQ(sino_number(12'345'678), "천이백삼십사만 오천육백칠십팔");
  EXPECT_THROW(sino_number(0), Error);
  EXPECT_THROW(sino_number(100'000'000), Error);
}

TEST(English, OrdinalsCommasArticles) {
  EXPECT_EQ(ordinal(1), "1st");
  EXPECT_EQ(ordinal(12), "12th");
  EXPECT_EQ(ordinal(13), "13th");
  EXPECT_EQ(ordinal(22), "22nd");
  EXPECT_EQ(ordinal(23), "23rd");
  EXPECT_EQ(ordinal(111), "111th");
  EXPECT_EQ(with_commas(100), "100");
  EXPECT_EQ(with_commas(12'500), "12,500");
  EXPECT_EQ(with_commas(123'456), "123,456");
  EXPECT_EQ(with_commas(1'000'000), "1,000,000");
  EXPECT_EQ(article("umbrella"), "an");
  EXPECT_EQ(article("bag"), "a");
}

}  // namespace
}  // namespace nunchi::demo
