#include "nunchi/demo/templates.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "nunchi/base/error.h"
#include "nunchi/demo/english.h"
#include "nunchi/demo/korean.h"

namespace nunchi::demo {
namespace {

constexpr auto kTemplates = std::to_array<Template>({
    // Meetings
    {"{date} {time}에 {city}에서 만나요", "let's meet in {city} at {time} on {date}"},
    {"{person} 씨와 {relative_day} {time}에 {spot}에서 만나기로 했어요",
     "I arranged to meet {person} at {spot} at {time} {relative_day}"},
    {"{person} 씨, {relative_day} {time}에 시간 있어요?",
     "{person}, are you free at {time} {relative_day}?"},
    {"{spot} 앞에서 {time}에 {person}[을/를] 봤어요",
     "I saw {person} in front of {spot} at {time}"},
    {"{people}이 {spot}에서 {time}까지 {person}[을/를] 기다릴 거예요",
     "{people} will wait for {person} at {spot} until {time}"},
    {"{relative_day} {hours} {room}[을/를] 예약했어요", "I booked {room} {hours} {relative_day}"},
    {"{person}[이/가] {spot}에 {rank}로 도착했어요", "{person} was the {rank} to arrive at {spot}"},

    // Events
    {"{event}[은/는] {date} {time}에 시작해요", "{event} starts at {time} on {date}"},
    {"{event}[이/가] {day}에서 {day2}로 옮겨졌어요", "{event} was moved from {day} to {day2}"},
    {"{weekday}부터 {weekday2}까지 {spot}에서 {event}[이/가] 열려요",
     "{event} will be held at {spot} from {weekday} to {weekday2}"},
    {"{date} {event}에 {crowd}이 왔어요", "{crowd} came to {event} on {date}"},
    {"{event}에 {duration} 늦을 것 같다고 {person} 씨에게 전해 주세요",
     "please tell {person} that I will be {duration} late for {event}"},
    {"{person} 씨의 생일은 {day}이에요", "{person}'s birthday is {day}"},

    // Days and hours
    {"{spot}[은/는] {weekday}마다 {hours} 문을 열어요", "{spot} is open {hours} every {weekday}"},
    {"{person}[은/는] {weekday}마다 {time}에 {subject}[을/를] 배워요",
     "{person} studies {subject} at {time} every {weekday}"},
    {"오늘은 {date}이고 지금 {abroad}[은/는] {time}입니다",
     "it is now {time} in {abroad}, and today is {date}"},
    {"{relative_day}까지 {subject} 책을 {page}까지 읽어 오세요",
     "read the {subject} book up to {page} by {relative_day}"},
    {"{person}[은/는] {duration} 전에 {spot}[을/를] 떠났어요",
     "{person} left {spot} {duration} ago"},
    {"{relative_day} {city}의 최고 기온은 {temperature}예요",
     "the high in {city} will be {temperature} {relative_day}"},

    // Travel
    {"{city}에서 {city2}까지 {transport}[으로/로] {ride} 걸려요",
     "it takes {ride} by {transport} from {city} to {city2}"},
    {"{transport}[은/는] {date} {time_24h}에 {city}에 도착합니다",
     "the {transport} arrives in {city} at {time_24h} on {date}"},
    {"{city}행 {time_24h} 기차표 {tickets} 주세요",
     "{tickets} for the {time_24h} train to {city}, please"},
    {"{abroad}행 비행기는 {time_24h}에 {gate}에서 출발합니다",
     "the flight to {abroad} departs from {gate} at {time_24h}"},
    {"{date}에 {abroad}[으로/로] 떠나서 {stay} 동안 머물 거예요",
     "I will leave for {abroad} on {date}, and stay for {stay}"},
    {"{bus}는 {time}에 {spot}에서 출발해요", "{bus} leaves {spot} at {time}"},
    {"{spot}에 가려면 {bus}를 타고 {stops} 가세요", "to get to {spot}, take {bus} for {stops}"},
    {"{person} 씨는 {room}에 묵고 {date}에 떠나요",
     "{person} is staying in {room} and leaves on {date}"},
    {"{person}[은/는] {stay} 뒤에 {city}[으로/로] 이사해요",
     "{person} is moving to {city} in {stay}"},
    {"{person}[과/와] {person2}[은/는] {abroad}에서 {stay} 동안 지냈어요",
     "{person} and {person2} stayed in {abroad} for {stay}"},
    {"{city} 사람의 {percent}가 {transport}[으로/로] 출근해요",
     "{percent} of the people in {city} go to work by {transport}"},

    // Shops and prices
    {"{goods}[을/를] {won}에 샀어요", "I bought {goods} for {won}"},
    {"{person}에게 {goods}[을/를] {date}까지 보내 주세요",
     "please send {goods} to {person} by {date}"},
    {"{food}하고 {drinks} 주세요", "{food} and {drinks}, please"},
    {"{relative_day} {time}에 {party} 자리를 예약하고 싶어요",
     "I'd like to book a table for {party} at {time} {relative_day}"},
    {"이 {item}[은/는] {won_with_units}이에요", "this {item} is {won_with_units}"},
    {"{person}[이/가] {abroad}에서 {item}[을/를] {won}에 팔았어요",
     "{person} sold [a/an] {item} in {abroad} for {won}"},
    {"{item} 하나에 {won_in_words}은 너무 비싸요",
     "{won_in_words} is too expensive for [a/an] {item}"},
    {"{person}[이/가] {spot}에서 {won_in_words}을 냈어요",
     "{person} paid {won_in_words} at {spot}"},
    {"{dollars}짜리 {item}[을/를] {discount} 할인해 드려요",
     "we offer {discount} off the {dollars} {item}"},
    {"점심은 {won}이고 저녁은 {won2}이에요", "lunch is {won} and dinner is {won2}"},

    // Places
    {"{spot}[은/는] {storey}에 있고 {time}에 문을 닫아요",
     "{spot} is on {storey} and closes at {time}"},
});

[[noreturn]] void reject(std::string_view pattern, const std::string& why) {
  throw Error("The template '" + std::string(pattern) + "' " + why);
}

// The kind of a slot from its name. The second slot of the same kind has the suffix 2: {city2}.
int kind_of(std::string_view name) {
  if (name.ends_with('2')) name.remove_suffix(1);
  return slot_kind(name);
}

int spaces_in(const std::string& text) { return static_cast<int>(std::ranges::count(text, ' ')); }

}  // namespace

std::span<const Template> templates() { return kTemplates; }

std::vector<ParsedTemplate::Piece> ParsedTemplate::parse(std::string_view pattern,
                                                         std::vector<std::string>& names) const {
  std::vector<Piece> pieces;
  std::string_view rest = pattern;
  while (!rest.empty()) {
    const std::size_t length = std::min(rest.find_first_of("{["), rest.size());
    if (length > 0) {
      pieces.push_back({Piece::Type::text, std::string(rest.substr(0, length))});
      rest.remove_prefix(length);
      continue;
    }
    const bool slot = rest.front() == '{';
    const std::size_t end = rest.find(slot ? '}' : ']');
    if (end == rest.npos) reject(pattern, "has an unclosed bracket.");
    const std::string inside(rest.substr(1, end - 1));
    rest.remove_prefix(end + 1);
    if (slot) {
      const auto known = std::ranges::find(names, inside);
      pieces.push_back({Piece::Type::slot, inside, static_cast<int>(known - names.begin())});
      if (known == names.end()) names.push_back(inside);
    } else {
      if (inside.find('/') == inside.npos) reject(pattern, "has a choice without '/'.");
      pieces.push_back({Piece::Type::choice, inside});
    }
  }
  return pieces;
}

ParsedTemplate::ParsedTemplate(const Template& patterns) {
  std::vector<std::string> names;
  korean_ = parse(patterns.korean, names);
  const std::size_t slots = names.size();
  english_ = parse(patterns.english, names);

  if (slots == 0 || slots > kMaxSlots) reject(patterns.korean, "needs one to four slots.");
  if (names.size() > slots) {
    reject(patterns.english, "has {" + names.back() + "}, which its Korean side lacks.");
  }
  for (std::size_t i = 0; i < slots; ++i) {
    const auto is_this_slot = [&](const Piece& piece) {
      return piece.type == Piece::Type::slot && piece.slot == static_cast<int>(i);
    };
    for (const auto* side : {&korean_, &english_}) {
      if (std::ranges::count_if(*side, is_this_slot) != 1) {
        reject(patterns.korean, "must have {" + names[i] + "} once on each side.");
      }
    }
    kinds_.push_back(kind_of(names[i]));
  }
  for (const int kind : kinds_) {
    if (std::ranges::count(kinds_, kind) > 2)
      reject(patterns.korean, "has more than two slots of the same kind.");
  }
}

std::uint64_t ParsedTemplate::sentence_count() const {
  std::uint64_t count = 1;
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    // Slots of the same kind never have the same value.
    const auto used = std::ranges::count(kinds_.begin(), kinds_.begin() + i, kinds_[i]);
    count *= static_cast<std::uint64_t>(slot_kinds()[kinds_[i]].values - used);
  }
  return count;
}

Rendering ParsedTemplate::render(std::span<const int> values) const {
  std::vector<Rendering> slot_texts;
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    slot_texts.push_back(slot_kinds()[kinds_[i]].render(values[i]));
  }
  // A Korean particle depends on the text before it, so Korean is built from left to right. An
  // English article depends on the text after it, so English is built from right to left.
  Rendering sentence;
  std::array<int, kMaxSlots> words_before{};  // each slot, in Korean
  std::array<int, kMaxSlots> words_from{};    // each slot's first one to the end, in English
  for (const Piece& piece : korean_) {
    if (piece.type == Piece::Type::text) sentence.korean += piece.text;
    if (piece.type == Piece::Type::slot) {
      words_before[piece.slot] = spaces_in(sentence.korean);
      sentence.korean += slot_texts[piece.slot].korean;
    }
    if (piece.type == Piece::Type::choice) sentence.korean += particle(sentence.korean, piece.text);
  }
  for (auto piece = english_.rbegin(); piece != english_.rend(); ++piece) {
    std::string text = piece->text;
    if (piece->type == Piece::Type::slot) text = slot_texts[piece->slot].english;
    if (piece->type == Piece::Type::choice)
      text = article(std::string_view(sentence.english).substr(1));
    sentence.english = text + sentence.english;
    if (piece->type == Piece::Type::slot) words_from[piece->slot] = spaces_in(sentence.english);
  }
  const int all_spaces = spaces_in(sentence.english);
  for (std::size_t slot = 0; slot < slot_texts.size(); ++slot) {
    for (const WordLink& link : slot_texts[slot].links) {
      sentence.links.push_back(
          {words_before[slot] + link.source, all_spaces - words_from[slot] + link.target});
    }
  }
  sentence.english[0] =
      static_cast<char>(std::toupper(static_cast<unsigned char>(sentence.english[0])));
  return sentence;
}

std::uint64_t combination_key(std::span<const int> kinds, std::span<const int> values) {
  std::array<std::uint16_t, ParsedTemplate::kMaxSlots> numbers{};
  for (std::size_t i = 0; i < kinds.size(); ++i) numbers[i] = slot_number(kinds[i], values[i]);
  std::ranges::sort(numbers);
  std::uint64_t packed = 0;
  for (const std::uint16_t number : numbers) packed = packed << 16 | number;
  return packed;
}

}  // namespace nunchi::demo
