#include "nunchi/demo/slots.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/base/nearest.h"
#include "nunchi/demo/english.h"
#include "nunchi/demo/korean.h"
#include "nunchi/demo/words.h"

namespace nunchi::demo {
namespace {

// ---- Plain words ----

template <const auto& kWords>
Rendering word(int value) {
  const Word& word = kWords[value];
  return {std::string(word.korean), std::string(word.english)};
}

template <const auto& kWords>
constexpr SlotKind words(std::string_view name) {
  return {name, static_cast<int>(kWords.size()), word<kWords>};
}

// ---- Things that are counted: native numerals and counters on the Korean side ----

constexpr int kMaxCount = 12;

template <const auto& kThings>
Rendering count(int value) {
  const Counted& thing = kThings[value / kMaxCount];
  const int number = value % kMaxCount + 1;
  std::string korean = thing.korean.empty() ? "" : std::string(thing.korean) + " ";
  korean += std::string(native_number(number)) + " " + std::string(thing.counter);
  const std::string_view noun = number == 1 ? thing.singular : thing.plural;
  return {korean, std::string(number_word(number)) + " " + std::string(noun)};
}

template <const auto& kThings>
constexpr SlotKind counted(std::string_view name) {
  return {name, static_cast<int>(kThings.size()) * kMaxCount, count<kThings>};
}

// The number of guests, as in "a table for three".
Rendering party(int value) {
  const int number = value + 1;
  return {std::string(native_number(number)) + " 명", std::string(number_word(number))};
}

// ---- Dates ----

namespace ch = std::chrono;

constexpr ch::sys_days kFirstDay = ch::year{2025} / ch::January / 1;
constexpr ch::sys_days kLastDayEnd = ch::year{2035} / ch::January / 1;

std::string month_and_day(ch::month month, ch::day day) {
  return std::to_string(unsigned{month}) + "월 " + std::to_string(unsigned{day}) + "일";
}

std::string day_in_english(ch::month month, ch::day day) {
  return std::string(month_name(unsigned{month})) + " " + std::to_string(unsigned{day});
}

// 2026년 11월 15일 일요일 / Sunday, November 15, 2026
Rendering date(int value) {
  const ch::sys_days days = kFirstDay + ch::days{value};
  const ch::year_month_day day{days};
  const Word& weekday = kWeekdays[ch::weekday{days}.c_encoding()];
  const std::string year = std::to_string(int{day.year()});
  return {
      year + "년 " + month_and_day(day.month(), day.day()) + " " + std::string(weekday.korean),
      std::string(weekday.english) + ", " + day_in_english(day.month(), day.day()) + ", " + year};
}

// 11월 15일 / November 15
constexpr int kDaysOfALeapYear = 366;
Rendering day_of_year(int value) {
  const ch::year_month_day day{ch::sys_days{ch::year{2028} / ch::January / 1} + ch::days{value}};
  return {month_and_day(day.month(), day.day()), day_in_english(day.month(), day.day())};
}

// 내일 / tomorrow, 다음 주 월요일 / next Monday
constexpr int kRelativeDays = kNearDays.size() + kWeeks.size() * kWeekdays.size();
Rendering relative_day(int value) {
  const int near = kNearDays.size(), week = kWeekdays.size();
  if (value < near) return word<kNearDays>(value);
  const Rendering this_or_next = word<kWeeks>((value - near) / week);
  const Rendering day = word<kWeekdays>((value - near) % week);
  return {this_or_next.korean + " " + day.korean, this_or_next.english + " " + day.english};
}

// ---- Times, in steps of five minutes; 12:05 AM is five minutes past midnight ----

constexpr int kMinutesOfADay = 24 * 60;
constexpr int kMinuteStep = 5;
constexpr int kMorning = 6 * 60;  // the earliest time_of_day

std::string hour_and_minute(int hour, int minute) {
  std::string text = std::to_string(hour) + "시";
  return minute == 0 ? text : text + " " + std::to_string(minute) + "분";
}

std::string time_in_korean(int minutes) {
  const int hour = minutes / 60;
  return std::string(hour < 12 ? "오전 " : "오후 ") +
         hour_and_minute(hour % 12 == 0 ? 12 : hour % 12, minutes % 60);
}

std::string time_in_english(int minutes) {
  const int hour = minutes / 60, minute = minutes % 60;
  std::string text = std::to_string(hour % 12 == 0 ? 12 : hour % 12);
  if (minute != 0) text += (minute < 10 ? ":0" : ":") + std::to_string(minute);
  return text + (hour < 12 ? " AM" : " PM");
}

// 오후 3시 20분 / 3:20 PM
Rendering time_of_day(int value) {
  const int minutes = kMorning + value * kMinuteStep;
  return {time_in_korean(minutes), time_in_english(minutes)};
}

// 15시 20분 / 3:20 PM
Rendering time_24h(int value) {
  const int minutes = value * kMinuteStep;
  return {hour_and_minute(minutes / 60, minutes % 60), time_in_english(minutes)};
}

// 오전 9시부터 오후 6시 30분까지 / from 9 AM to 6:30 PM
constexpr int kFirstOpening = 7 * 60, kOpenings = 14, kOpeningLengths = 19, kHalfHour = 30;
Rendering hours(int value) {
  const int opens = kFirstOpening + value / kOpeningLengths * kHalfHour;
  const int closes = opens + (value % kOpeningLengths + 2) * kHalfHour;
  return {time_in_korean(opens) + "부터 " + time_in_korean(closes) + "까지",
          "from " + time_in_english(opens) + " to " + time_in_english(closes)};
}

// ---- Lengths of time ----

std::string plural(int number, const std::string& unit) {
  return std::string(number_word(number)) + " " + unit + (number == 1 ? "" : "s");
}

// 두 시간 / two hours; 두 시간 반 / two and a half hours; 25분 / 25 minutes
constexpr int kWholeHours = 12, kHalfHours = 6, kMinutes = 11;
Rendering duration(int value) {
  if (value < kWholeHours) {
    return {std::string(native_number(value + 1)) + " 시간", plural(value + 1, "hour")};
  }
  value -= kWholeHours;
  if (value < kHalfHours) {
    return {std::string(native_number(value + 1)) + " 시간 반",
            std::string(number_word(value + 1)) + " and a half hours"};
  }
  const std::string minutes = std::to_string((value - kHalfHours + 1) * kMinuteStep);
  return {minutes + "분", minutes + " minutes"};
}

// The time of a ride between two cities: 세 시간 반 / three and a half hours
constexpr int kRides = kHalfHours * 2;
Rendering ride(int value) {
  return duration(value < kHalfHours ? value : kWholeHours + value - kHalfHours);
}

// 3주 / three weeks
struct Calendar {
  std::string_view korean, english;
  int first, last;
};
constexpr auto kCalendar = std::to_array<Calendar>(
    {{"일", "day", 2, 10}, {"주", "week", 1, 8}, {"개월", "month", 1, 11}, {"년", "year", 1, 10}});
constexpr int kStays = 9 + 8 + 11 + 10;
Rendering stay(int value) {
  for (const Calendar& unit : kCalendar) {
    const int number = unit.first + value;
    if (number <= unit.last) {
      return {std::to_string(number) + std::string(unit.korean),
              plural(number, std::string(unit.english))};
    }
    value -= unit.last - unit.first + 1;
  }
  throw Error("stay: no such value.");
}

// ---- Prices ----

// 12,500원 / 12,500 won
constexpr int kPriceStep = 500, kWon = 199;
Rendering won(int value) {
  const std::string price = with_commas((value + 1) * kPriceStep);
  return {price + "원", price + " won"};
}

// 만 이천오백 원 / 12,500 won
constexpr int kFirstPrice = 1'000, kPrices = 198;
Rendering won_in_words(int value) {
  const int price = kFirstPrice + value * kPriceStep;
  return {sino_number(price) + " 원", with_commas(price) + " won"};
}

// 3만 5천 원 / 35,000 won: digits with the units 만 (10,000) and 천 (1,000), as on price signs
constexpr int kTenThousands = 99, kThousands = 10;
Rendering won_with_units(int value) {
  const int thousands = kThousands + value;
  std::string korean = std::to_string(thousands / 10) + "만 ";
  if (thousands % 10 != 0) korean += std::to_string(thousands % 10) + "천 ";
  return {korean + "원", with_commas(thousands * 1'000) + " won"};
}

// 12달러 50센트 / $12.50
constexpr int kMaxDollars = 99, kDimes = 10;
Rendering dollars(int value) {
  const std::string whole = std::to_string(value / kDimes + 1);
  if (value % kDimes == 0) return {whole + "달러", "$" + whole};
  const std::string cents = std::to_string(value % kDimes * 10);
  return {whole + "달러 " + cents + "센트", "$" + whole + "." + cents};
}

// ---- Numbers ----

// 2,500명 / 2,500 people
constexpr int kCrowds = 99;
Rendering crowd(int value) {
  const std::string number = with_commas((value + 1) * 100);
  return {number + "명", number + " people"};
}

// 273번 버스 / bus 273
constexpr int kFirstBus = 100, kBuses = 900;
Rendering bus(int value) {
  const std::string number = std::to_string(kFirstBus + value);
  return {number + "번 버스", "bus " + number};
}

// 302호 / Room 302
constexpr int kFloors = 9, kRoomsOfAFloor = 30;
Rendering room(int value) {
  const std::string number =
      std::to_string((value / kRoomsOfAFloor + 1) * 100 + value % kRoomsOfAFloor + 1);
  return {number + "호", "Room " + number};
}

// 12번 게이트 / Gate 12
constexpr int kGates = 60;
Rendering gate(int value) {
  const std::string number = std::to_string(value + 1);
  return {number + "번 게이트", "Gate " + number};
}

// 25쪽 / page 25
constexpr int kPages = 99;
Rendering page(int value) {
  const std::string number = std::to_string(value + 1);
  return {number + "쪽", "page " + number};
}

// 3층 / the 3rd floor
constexpr int kStoreys = 30;
Rendering storey(int value) {
  return {std::to_string(value + 1) + "층", "the " + ordinal(value + 1) + " floor"};
}

// 세 번째 / third
constexpr int kRanks = 12;
Rendering rank(int value) {
  return {native_ordinal(value + 1), std::string(ordinal_word(value + 1))};
}

// 25퍼센트 / 25 percent
constexpr int kPercents = 99;
Rendering percent(int value) {
  const std::string number = std::to_string(value + 1);
  return {number + "퍼센트", number + " percent"};
}

// 20퍼센트 / 20 percent, in steps of five
constexpr int kDiscountStep = 5, kDiscounts = 14;
Rendering discount(int value) { return percent((value + 1) * kDiscountStep - 1); }

// 영하 5도 / 5 degrees below zero
constexpr int kColdest = -15, kTemperatures = 54;
Rendering temperature(int value) {
  const int degrees = kColdest + value;
  const std::string number = std::to_string(std::abs(degrees));
  const std::string english = number + (number == "1" ? " degree" : " degrees");
  if (degrees < 0) return {"영하 " + number + "도", english + " below zero"};
  return {number + "도", english};
}

constexpr auto kKinds = std::to_array<SlotKind>({
    words<kPeople>("person"),
    words<kCities>("city"),
    words<kAbroad>("abroad"),
    words<kSpots>("spot"),
    words<kEvents>("event"),
    words<kItems>("item"),
    words<kTransports>("transport"),
    words<kSubjects>("subject"),
    words<kWeekdays>("weekday"),
    counted<kGoods>("goods"),
    counted<kFood>("food"),
    counted<kDrinks>("drinks"),
    counted<kHeads>("people"),
    counted<kTickets>("tickets"),
    counted<kStops>("stops"),
    {"party", kMaxCount, party},
    {"date", (kLastDayEnd - kFirstDay).count(), date},
    {"day", kDaysOfALeapYear, day_of_year},
    {"relative_day", kRelativeDays, relative_day},
    {"time", (kMinutesOfADay - kMorning) / kMinuteStep, time_of_day},
    {"time_24h", kMinutesOfADay / kMinuteStep, time_24h},
    {"hours", kOpenings* kOpeningLengths, hours},
    {"duration", kWholeHours + kHalfHours + kMinutes, duration},
    {"ride", kRides, ride},
    {"stay", kStays, stay},
    {"won", kWon, won},
    {"won_in_words", kPrices, won_in_words},
    {"won_with_units", kTenThousands* kThousands, won_with_units},
    {"dollars", kMaxDollars* kDimes, dollars},
    {"crowd", kCrowds, crowd},
    {"bus", kBuses, bus},
    {"room", kFloors* kRoomsOfAFloor, room},
    {"gate", kGates, gate},
    {"page", kPages, page},
    {"storey", kStoreys, storey},
    {"rank", kRanks, rank},
    {"percent", kPercents, percent},
    {"discount", kDiscounts, discount},
    {"temperature", kTemperatures, temperature},
});

// The slot number of each kind's first value; the last entry is one past all slot numbers.
constexpr auto kFirstNumbers = [] {
  std::array<int, kKinds.size() + 1> first{1};
  for (std::size_t i = 0; i < kKinds.size(); ++i) first[i + 1] = first[i] + kKinds[i].values;
  return first;
}();
static_assert(kFirstNumbers.back() <= 0x10000, "slot numbers must fit in 16 bits");

}  // namespace

std::span<const SlotKind> slot_kinds() { return kKinds; }

int slot_kind(std::string_view name) {
  const auto found = std::ranges::find(kKinds, name, &SlotKind::name);
  if (found != kKinds.end()) return static_cast<int>(found - kKinds.begin());
  std::vector<std::string> names;
  names.reserve(kKinds.size());
  for (const SlotKind& kind : kKinds) names.emplace_back(kind.name);
  const std::string close = nearest(name, names);
  throw Error("Unknown slot {" + std::string(name) + "}." +
              (close.empty() ? "" : " Did you mean {" + close + "}?"));
}

std::uint16_t slot_number(int kind, int value) {
  return static_cast<std::uint16_t>(kFirstNumbers[kind] + value);
}

}  // namespace nunchi::demo
