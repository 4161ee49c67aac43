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

// ---- Links between words ----

std::vector<std::string_view> words_in(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find(' '), text.size());
    if (length > 0) words.push_back(text.substr(0, length));
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return words;
}

bool is_function_word(std::string_view word) {
  static constexpr std::array<std::string_view, 7> kWords{"a",  "after", "and", "from",
                                                          "of", "the",   "to"};
  return std::ranges::find(kWords, word) != kWords.end();
}

// A text without its marks, and the marks of each word.
struct MarkedText {
  std::string text;
  std::vector<std::string> marks;
  bool has_marks = false;
};

MarkedText read_marks(std::string_view marked) {
  MarkedText read;
  for (const std::string_view word : words_in(marked)) {
    const std::size_t bar = std::min(word.find('|'), word.size());
    std::string_view rest = word.substr(std::min(bar + 1, word.size()));
    std::string marks;
    for (; !rest.empty() && rest[0] >= 'a' && rest[0] <= 'z'; rest.remove_prefix(1)) {
      marks += rest[0];
    }
    read.has_marks = read.has_marks || bar < word.size();
    read.text +=
        (read.text.empty() ? "" : " ") + std::string(word.substr(0, bar)) + std::string(rest);
    read.marks.push_back(std::move(marks));
  }
  return read;
}

// ---- Plain words ----

template <const auto& kWords>
Rendering word(int value) {
  return linked(kWords[value].korean, kWords[value].english);
}

template <const auto& kWords>
constexpr SlotKind words(std::string_view name) {
  return {name, static_cast<int>(kWords.size()), word<kWords>};
}

// The text with a mark on each of its words that has a meaning of its own.
std::string marked(std::string_view text, char mark) {
  std::string result;
  for (const std::string_view word : words_in(text)) {
    if (!result.empty()) result += ' ';
    result += word;
    if (!is_function_word(word)) result += std::string("|") + mark;
  }
  return result;
}

// ---- Things that are counted: native numerals and counters on the Korean side ----

constexpr int kMaxCount = 12;

template <const auto& kThings>
Rendering count(int value) {
  const Counted& thing = kThings[value / kMaxCount];
  const int number = value % kMaxCount + 1;
  const std::string_view noun = number == 1 ? thing.singular : thing.plural;
  const std::string native = std::string(native_number(number)) + "|n ";
  std::string english = std::string(number_word(number)) + "|n ";
  if (thing.korean.empty()) {  // 세 명 / three people
    return linked(native + std::string(thing.counter), english + std::string(noun));
  }
  const std::string korean =
      std::string(thing.korean) + "|t " + native + std::string(thing.counter) + "|c";
  const std::size_t of = noun.find(" of ");
  if (of == noun.npos) {  // 사과 세 개 / three apples
    english += marked(noun, 't');
  } else {  // 물 두 병 / two bottles of water
    english += marked(noun.substr(0, of), 'c') + " " + marked(noun.substr(of + 1), 't');
  }
  return linked(korean, english);
}

template <const auto& kThings>
constexpr SlotKind counted(std::string_view name) {
  return {name, static_cast<int>(kThings.size()) * kMaxCount, count<kThings>};
}

// The number of guests, as in "a table for three".
Rendering party(int value) {
  const int number = value + 1;
  return linked(std::string(native_number(number)) + " 명", number_word(number));
}

// ---- Dates ----

namespace ch = std::chrono;

constexpr ch::sys_days kFirstDay = ch::year{2025} / ch::January / 1;
constexpr ch::sys_days kLastDayEnd = ch::year{2035} / ch::January / 1;

std::string month_and_day(ch::month month, ch::day day) {
  return std::to_string(unsigned{month}) + "월|m " + std::to_string(unsigned{day}) + "일|d";
}

std::string day_in_english(ch::month month, ch::day day) {
  return std::string(month_name(unsigned{month})) + "|m " + std::to_string(unsigned{day}) + "|d";
}

// 2026년 11월 15일 일요일 / Sunday, November 15, 2026
Rendering date(int value) {
  const ch::sys_days days = kFirstDay + ch::days{value};
  const ch::year_month_day day{days};
  const Word& weekday = kWeekdays[ch::weekday{days}.c_encoding()];
  const std::string year = std::to_string(int{day.year()});
  return linked(
      year + "년|y " + month_and_day(day.month(), day.day()) + " " + marked(weekday.korean, 'w'),
      marked(weekday.english, 'w') + ", " + day_in_english(day.month(), day.day()) + ", " + year +
          "|y");
}

// 11월 15일 / November 15
constexpr int kDaysOfALeapYear = 366;
Rendering day_of_year(int value) {
  const ch::year_month_day day{ch::sys_days{ch::year{2028} / ch::January / 1} + ch::days{value}};
  return linked(month_and_day(day.month(), day.day()), day_in_english(day.month(), day.day()));
}

// 내일 / tomorrow, 다음 주 월요일 / next Monday
constexpr int kRelativeDays = kNearDays.size() + kWeeks.size() * kWeekdays.size();
Rendering relative_day(int value) {
  const int near = kNearDays.size(), week = kWeekdays.size();
  if (value < near) return word<kNearDays>(value);
  const Word& this_or_next = kWeeks[(value - near) / week];
  const Word& day = kWeekdays[(value - near) % week];
  return linked(marked(this_or_next.korean, 'w') + " " + marked(day.korean, 'd'),
                marked(this_or_next.english, 'w') + " " + marked(day.english, 'd'));
}

// ---- Times, in steps of five minutes; 12:05 AM is five minutes past midnight ----

constexpr int kMinutesOfADay = 24 * 60;
constexpr int kMinuteStep = 5;
constexpr int kMorning = 6 * 60;  // the earliest time_of_day

// The marks of a time's parts in both languages.
struct TimeMarks {
  std::string half, hour, minute;  // half: AM or PM
};
const TimeMarks kTime{"p", "h", "m"}, kClosing{"x", "y", "z"};
const TimeMarks kTime24h{"", "hp", "m"};  // the hour says AM or PM

std::string hour_and_minute(int hour, int minute, const TimeMarks& marks) {
  std::string text = std::to_string(hour) + "시|" + marks.hour;
  return minute == 0 ? text : text + " " + std::to_string(minute) + "분|" + marks.minute;
}

std::string time_in_korean(int minutes, const TimeMarks& marks) {
  const int hour = minutes / 60;
  return (hour < 12 ? "오전|" : "오후|") + marks.half + " " +
         hour_and_minute(hour % 12 == 0 ? 12 : hour % 12, minutes % 60, marks);
}

std::string time_in_english(int minutes, const TimeMarks& marks) {
  const int hour = minutes / 60, minute = minutes % 60;
  std::string text = std::to_string(hour % 12 == 0 ? 12 : hour % 12);
  if (minute != 0) text += (minute < 10 ? ":0" : ":") + std::to_string(minute);
  text += "|" + marks.hour + (minute != 0 ? marks.minute : "");
  return text + (hour < 12 ? " AM|" : " PM|") + marks.half;
}

// 오후 3시 20분 / 3:20 PM
Rendering time_of_day(int value) {
  const int minutes = kMorning + value * kMinuteStep;
  return linked(time_in_korean(minutes, kTime), time_in_english(minutes, kTime));
}

// 15시 20분 / 3:20 PM
Rendering time_24h(int value) {
  const int minutes = value * kMinuteStep;
  return linked(hour_and_minute(minutes / 60, minutes % 60, kTime24h),
                time_in_english(minutes, kTime));
}

// 오전 9시부터 오후 6시 30분까지 / from 9 AM to 6:30 PM
constexpr int kFirstOpening = 7 * 60, kOpenings = 14, kOpeningLengths = 19, kHalfHour = 30;
Rendering hours(int value) {
  const int opens = kFirstOpening + value / kOpeningLengths * kHalfHour;
  const int closes = opens + (value % kOpeningLengths + 2) * kHalfHour;
  return linked(
      time_in_korean(opens, kTime) + "부터 " + time_in_korean(closes, kClosing) + "까지",
      "from " + time_in_english(opens, kTime) + " to " + time_in_english(closes, kClosing));
}

// ---- Lengths of time ----

std::string plural(int number, std::string_view unit) {
  return std::string(unit) + (number == 1 ? "" : "s");
}

// 두 시간 / two hours; 두 시간 반 / two and a half hours; 25분 / 25 minutes
constexpr int kWholeHours = 12, kHalfHours = 6, kMinutes = 11;
Rendering duration(int value) {
  if (value < kWholeHours) {
    return linked(std::string(native_number(value + 1)) + "|n 시간|u",
                  std::string(number_word(value + 1)) + "|n " + plural(value + 1, "hour") + "|u");
  }
  value -= kWholeHours;
  if (value < kHalfHours) {
    return linked(std::string(native_number(value + 1)) + "|n 시간|u 반|h",
                  std::string(number_word(value + 1)) + "|n and a half|h hours|u");
  }
  const std::string minutes = std::to_string((value - kHalfHours + 1) * kMinuteStep);
  return linked(minutes + "분", minutes + " minutes");
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
      return linked(std::to_string(number) + std::string(unit.korean),
                    std::string(number_word(number)) + " " + plural(number, unit.english));
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
  return linked(price + "원|n", price + "|n won");
}

// 만 이천오백 원 / 12,500 won
constexpr int kFirstPrice = 1'000, kPrices = 198;
Rendering won_in_words(int value) {
  const int price = kFirstPrice + value * kPriceStep;
  return linked(marked(sino_number(price), 'n') + " 원", with_commas(price) + "|n won");
}

// 3만 5천 원 / 35,000 won: digits with the units 만 (10,000) and 천 (1,000), as on price signs
constexpr int kTenThousands = 99, kThousands = 10;
Rendering won_with_units(int value) {
  const int thousands = kThousands + value;
  std::string korean = std::to_string(thousands / 10) + "만|n ";
  if (thousands % 10 != 0) korean += std::to_string(thousands % 10) + "천|n ";
  return linked(korean + "원", with_commas(thousands * 1'000) + "|n won");
}

// 12달러 50센트 / $12.50
constexpr int kMaxDollars = 99, kDimes = 10;
Rendering dollars(int value) {
  const std::string whole = std::to_string(value / kDimes + 1);
  if (value % kDimes == 0) return linked(whole + "달러", "$" + whole);
  const std::string cents = std::to_string(value % kDimes * 10);
  return linked(whole + "달러 " + cents + "센트", "$" + whole + "." + cents);
}

// ---- Numbers ----

// 2,500명 / 2,500 people
constexpr int kCrowds = 99;
Rendering crowd(int value) {
  const std::string number = with_commas((value + 1) * 100);
  return linked(number + "명|n", number + "|n people");
}

// 273번 버스 / bus 273
constexpr int kFirstBus = 100, kBuses = 900;
Rendering bus(int value) {
  const std::string number = std::to_string(kFirstBus + value);
  return linked(number + "번|n 버스", "bus " + number + "|n");
}

// 302호 / Room 302
constexpr int kFloors = 9, kRoomsOfAFloor = 30;
Rendering room(int value) {
  const std::string number =
      std::to_string((value / kRoomsOfAFloor + 1) * 100 + value % kRoomsOfAFloor + 1);
  return linked(number + "호|n", "Room " + number + "|n");
}

// 12번 게이트 / Gate 12
constexpr int kGates = 60;
Rendering gate(int value) {
  const std::string number = std::to_string(value + 1);
  return linked(number + "번|n 게이트", "Gate " + number + "|n");
}

// 25쪽 / page 25
constexpr int kPages = 99;
Rendering page(int value) {
  const std::string number = std::to_string(value + 1);
  return linked(number + "쪽|n", "page " + number + "|n");
}

// 3층 / the 3rd floor
constexpr int kStoreys = 30;
Rendering storey(int value) {
  return linked(std::to_string(value + 1) + "층|n", "the " + ordinal(value + 1) + "|n floor");
}

// 세 번째 / third
constexpr int kRanks = 12;
Rendering rank(int value) { return linked(native_ordinal(value + 1), ordinal_word(value + 1)); }

// 25퍼센트 / 25 percent
constexpr int kPercents = 99;
Rendering percent(int value) {
  const std::string number = std::to_string(value + 1);
  return linked(number + "퍼센트|n", number + "|n percent");
}

// 20퍼센트 / 20 percent, in steps of five
constexpr int kDiscountStep = 5, kDiscounts = 14;
Rendering discount(int value) { return percent((value + 1) * kDiscountStep - 1); }

// 영하 5도 / 5 degrees below zero
constexpr int kColdest = -15, kTemperatures = 54;
Rendering temperature(int value) {
  const int degrees = kColdest + value;
  const std::string number = std::to_string(std::abs(degrees));
  const std::string english = number + "|d " + plural(std::abs(degrees), "degree");
  if (degrees < 0) return linked("영하|b " + number + "도|d", english + " below|b zero|b");
  return linked(number + "도|d", english);
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

Rendering linked(std::string_view marked_korean, std::string_view marked_english) {
  MarkedText korean = read_marks(marked_korean), english = read_marks(marked_english);
  Rendering rendering{std::move(korean.text), std::move(english.text)};
  const auto english_words = words_in(rendering.english);
  const bool has_marks = korean.has_marks || english.has_marks;
  for (std::size_t e = 0; e < english.marks.size(); ++e) {
    for (std::size_t k = 0; k < korean.marks.size(); ++k) {
      const bool same = has_marks
                            ? english.marks[e].find_first_of(korean.marks[k]) != std::string::npos
                            : !is_function_word(english_words[e]);
      if (same) rendering.links.push_back({static_cast<int>(k), static_cast<int>(e)});
    }
  }
  return rendering;
}

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
