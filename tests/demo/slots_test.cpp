#include "nunchi/demo/slots.h"

#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/text/unicode.h"

namespace nunchi::demo {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

// The English form of the value with this Korean form.
std::string english_of(std::string_view kind, const std::string& korean) {
  const SlotKind& slot = slot_kinds()[slot_kind(kind)];
  for (int value = 0; value < slot.values; ++value) {
    const Rendering text = slot.render(value);
    if (text.korean == korean) return text.english;
  }
  return "(no value reads " + korean + ")";
}

TEST(Slots, ValuesOfAKindDifferInBothLanguages) {
  for (const SlotKind& kind : slot_kinds()) {
    std::set<std::string> korean, english;
    for (int value = 0; value < kind.values; ++value) {
      const Rendering text = kind.render(value);
      EXPECT_TRUE(korean.insert(text.korean).second) << kind.name << ": " << text.korean;
      EXPECT_TRUE(english.insert(text.english).second) << kind.name << ": " << text.english;
      EXPECT_EQ(text.korean, nfc(text.korean));
      EXPECT_EQ(text.korean.find("  "), std::string::npos) << text.korean;
    }
  }
}

TEST(Slots, EachValueHasItsOwnNumber) {
  std::set<int> numbers;
  std::size_t values = 0;
  for (int kind = 0; kind < static_cast<int>(slot_kinds().size()); ++kind) {
    for (int value = 0; value < slot_kinds()[kind].values; ++value, ++values) {
      numbers.insert(slot_number(kind, value));
    }
  }
  EXPECT_EQ(numbers.size(), values);
  EXPECT_GT(*numbers.begin(), 0);
}

TEST(Slots, WeekdaysMatchTheCalendar) {
  EXPECT_EQ(english_of("date", "2026년 11월 15일 일요일"), "Sunday, November 15, 2026");
  EXPECT_EQ(english_of("date", "2025년 1월 1일 수요일"), "Wednesday, January 1, 2025");
  EXPECT_EQ(english_of("date", "2028년 2월 29일 화요일"), "Tuesday, February 29, 2028");
  EXPECT_EQ(english_of("date", "2030년 3월 1일 금요일"), "Friday, March 1, 2030");
  EXPECT_EQ(english_of("date", "2034년 12월 31일 일요일"), "Sunday, December 31, 2034");
}

TEST(Slots, LeapYearsHaveALeapDay) {
  EXPECT_EQ(english_of("day", "2월 29일"), "February 29");
  EXPECT_EQ(english_of("day", "12월 31일"), "December 31");
}

TEST(Slots, TwelveOClock) {
  EXPECT_EQ(english_of("time", "오후 12시"), "12 PM");
  EXPECT_EQ(english_of("time", "오후 12시 5분"), "12:05 PM");
  EXPECT_EQ(english_of("time", "오전 11시 55분"), "11:55 AM");
  EXPECT_EQ(english_of("time", "오후 3시 20분"), "3:20 PM");
  EXPECT_EQ(english_of("time_24h", "0시"), "12 AM");
  EXPECT_EQ(english_of("time_24h", "0시 5분"), "12:05 AM");
  EXPECT_EQ(english_of("time_24h", "12시 30분"), "12:30 PM");
  EXPECT_EQ(english_of("time_24h", "23시 55분"), "11:55 PM");
  EXPECT_EQ(english_of("hours", "오전 9시부터 오후 6시 30분까지"), "from 9 AM to 6:30 PM");
}

TEST(Slots, CountersAndPlurals) {
  EXPECT_EQ(english_of("goods", "사과 한 개"), "one apple");
  EXPECT_EQ(english_of("goods", "사과 세 개"), "three apples");
  EXPECT_EQ(english_of("goods", "구두 두 켤레"), "two pairs of shoes");
  EXPECT_EQ(english_of("goods", "감자 열두 개"), "twelve potatoes");
  EXPECT_EQ(english_of("drinks", "커피 네 잔"), "four cups of coffee");
  EXPECT_EQ(english_of("people", "한 명"), "one person");
  EXPECT_EQ(english_of("people", "세 명"), "three people");
  EXPECT_EQ(english_of("tickets", "두 장"), "two tickets");
}

TEST(Slots, Prices) {
  EXPECT_EQ(english_of("won", "12,500원"), "12,500 won");
  EXPECT_EQ(english_of("won_in_words", "만 이천오백 원"), "12,500 won");
  EXPECT_EQ(english_of("won_in_words", "천 원"), "1,000 won");
  EXPECT_EQ(english_of("won_with_units", "3만 5천 원"), "35,000 won");
  EXPECT_EQ(english_of("won_with_units", "12만 원"), "120,000 won");
  EXPECT_EQ(english_of("dollars", "12달러 50센트"), "$12.50");
  EXPECT_EQ(english_of("dollars", "7달러"), "$7");
}

TEST(Slots, LengthsOfTimeAndNumbers) {
  EXPECT_EQ(english_of("duration", "한 시간"), "one hour");
  EXPECT_EQ(english_of("duration", "두 시간 반"), "two and a half hours");
  EXPECT_EQ(english_of("duration", "25분"), "25 minutes");
  EXPECT_EQ(english_of("stay", "1주"), "one week");
  EXPECT_EQ(english_of("stay", "3개월"), "three months");
  EXPECT_EQ(english_of("stay", "10년"), "ten years");
  EXPECT_EQ(english_of("relative_day", "다음 주 월요일"), "next Monday");
  EXPECT_EQ(english_of("storey", "21층"), "the 21st floor");
  EXPECT_EQ(english_of("room", "302호"), "Room 302");
  EXPECT_EQ(english_of("temperature", "영하 1도"), "1 degree below zero");
  EXPECT_EQ(english_of("temperature", "0도"), "0 degrees");
  EXPECT_EQ(english_of("discount", "20퍼센트"), "20 percent");
}

// The links of the value with this Korean form: "3:20=3시 3:20=20분 PM=오후".
std::string links_of(std::string_view kind, const std::string& korean) {
  const SlotKind& slot = slot_kinds()[slot_kind(kind)];
  for (int value = 0; value < slot.values; ++value) {
    const Rendering text = slot.render(value);
    if (text.korean != korean) continue;
    const std::vector<std::string> source = split(text.korean), target = split(text.english);
    std::string links;
    for (const WordLink& link : text.links) {
      links += (links.empty() ? "" : " ") + target.at(link.target) + "=" + source.at(link.source);
    }
    return links;
  }
  return "(no value reads " + korean + ")";
}

TEST(Slots, WordsAreLinkedWithTheWordsThatTheyTranslate) {
  EXPECT_EQ(links_of("city", "서울"), "Seoul=서울");
  EXPECT_EQ(links_of("spot", "우체국"), "post=우체국 office=우체국");
  EXPECT_EQ(links_of("event", "생일 파티"), "birthday=생일 party=파티");
  EXPECT_EQ(links_of("date", "2026년 11월 15일 일요일"),
            "Sunday,=일요일 November=11월 15,=15일 2026=2026년");
  EXPECT_EQ(links_of("time", "오후 3시 20분"), "3:20=3시 3:20=20분 PM=오후");
  EXPECT_EQ(links_of("time", "오후 3시"), "3=3시 PM=오후");
  EXPECT_EQ(links_of("time_24h", "15시 20분"), "3:20=15시 3:20=20분 PM=15시");
  EXPECT_EQ(links_of("hours", "오전 9시부터 오후 6시 30분까지"),
            "9=9시부터 AM=오전 6:30=6시 6:30=30분까지 PM=오후");
  EXPECT_EQ(links_of("relative_day", "다음 주 월요일"), "next=다음 next=주 Monday=월요일");
  EXPECT_EQ(links_of("drinks", "커피 네 잔"), "four=네 cups=잔 coffee=커피");
  EXPECT_EQ(links_of("goods", "사과 세 개"), "three=세 apples=사과");
  EXPECT_EQ(links_of("tickets", "두 장"), "two=두");
  EXPECT_EQ(links_of("duration", "두 시간 반"), "two=두 half=반 hours=시간");
  EXPECT_EQ(links_of("won_in_words", "만 이천오백 원"), "12,500=만 12,500=이천오백");
  EXPECT_EQ(links_of("bus", "273번 버스"), "273=273번");
  EXPECT_EQ(links_of("temperature", "영하 5도"), "5=5도 below=영하 zero=영하");
}

TEST(Slots, EveryValueHasLinks) {
  for (const SlotKind& kind : slot_kinds()) {
    for (int value = 0; value < kind.values; ++value) {
      const Rendering text = kind.render(value);
      EXPECT_FALSE(text.links.empty()) << kind.name << ": " << text.korean;
      EXPECT_EQ((text.korean + text.english).find('|'), std::string::npos) << text.korean;
      std::set<int> sources;
      for (const WordLink& link : text.links) {
        ASSERT_LT(link.source, std::ssize(split(text.korean)));
        ASSERT_LT(link.target, std::ssize(split(text.english)));
        sources.insert(link.source);
      }
      // Every Korean word means something of its own, except a counter or a unit: 개, 원.
      EXPECT_GE(sources.size() + 1, split(text.korean).size()) << text.korean;
    }
  }
}

TEST(Slots, AnUnknownKindNamesTheNearest) {
  try {
    slot_kind("citi");
    FAIL() << "found";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("{city}"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace nunchi::demo
