// The words of the demo's sentences, with marks where it is not clear which words of both languages
// belong together (linked() in demo/slots.h). Within a list, all words are different in both
// languages.
#pragma once

#include <array>
#include <string_view>

namespace nunchi::demo {

struct Word {
  std::string_view korean, english;
};

inline constexpr auto kPeople = std::to_array<Word>({
    {"민수", "Minsu"},    {"지훈", "Jihoon"}, {"서연", "Seoyeon"}, {"하은", "Haeun"},
    {"준호", "Junho"},    {"유진", "Yujin"},  {"지민", "Jimin"},   {"수빈", "Subin"},
    {"현우", "Hyunwoo"},  {"은지", "Eunji"},  {"도윤", "Doyun"},   {"예린", "Yerin"},
    {"태호", "Taeho"},    {"소라", "Sora"},   {"나영", "Nayoung"}, {"진아", "Jina"},
    {"동현", "Donghyun"}, {"미나", "Mina"},   {"재석", "Jaeseok"}, {"혜진", "Hyejin"},
    {"성호", "Sungho"},   {"보라", "Bora"},   {"한별", "Hanbyul"}, {"우진", "Woojin"},
});

inline constexpr auto kCities = std::to_array<Word>({
    {"서울", "Seoul"},     {"부산", "Busan"},   {"대구", "Daegu"},    {"인천", "Incheon"},
    {"광주", "Gwangju"},   {"대전", "Daejeon"}, {"울산", "Ulsan"},    {"제주", "Jeju"},
    {"수원", "Suwon"},     {"전주", "Jeonju"},  {"경주", "Gyeongju"}, {"강릉", "Gangneung"},
    {"춘천", "Chuncheon"}, {"속초", "Sokcho"},  {"여수", "Yeosu"},    {"포항", "Pohang"},
    {"목포", "Mokpo"},     {"안동", "Andong"},  {"창원", "Changwon"}, {"청주", "Cheongju"},
});

inline constexpr auto kAbroad = std::to_array<Word>({
    {"런던", "London"},
    {"파리", "Paris"},
    {"도쿄", "Tokyo"},
    {"뉴욕", "New York"},
    {"베를린", "Berlin"},
    {"시드니", "Sydney"},
    {"이스탄불", "Istanbul"},
    {"로마", "Rome"},
    {"방콕", "Bangkok"},
    {"하노이", "Hanoi"},
    {"마드리드", "Madrid"},
    {"브뤼셀", "Brussels"},
});

inline constexpr auto kSpots = std::to_array<Word>({
    {"도서관", "the library"},       {"공항", "the airport"},
    {"박물관", "the museum"},        {"공원", "the park"},
    {"병원", "the hospital"},        {"은행", "the bank"},
    {"우체국", "the post office"},   {"서점", "the bookstore"},
    {"호텔", "the hotel"},           {"식당", "the restaurant"},
    {"영화관", "the movie theater"}, {"시장", "the market"},
    {"체육관", "the gym"},           {"미술관", "the art gallery"},
    {"수영장", "the swimming pool"}, {"약국", "the pharmacy"},
    {"빵집", "the bakery"},          {"백화점", "the department store"},
    {"동물원", "the zoo"},           {"카페", "the cafe"},
    {"대사관", "the embassy"},       {"학교", "the school"},
    {"사무실", "the office"},        {"놀이터", "the playground"},
});

inline constexpr auto kEvents = std::to_array<Word>({
    {"회의", "the meeting"},
    {"수업", "the class"},
    {"공연", "the show"},
    {"시험", "the exam"},
    {"전시회", "the exhibition"},
    {"결혼식", "the wedding"},
    {"생일|a 파티|b", "the birthday|a party|b"},
    {"강연", "the lecture"},
    {"경기", "the game"},
    {"면접", "the interview"},
    {"발표", "the presentation"},
    {"음악회", "the concert"},
    {"축제", "the festival"},
    {"졸업식", "the graduation"},
    {"세미나", "the seminar"},
    {"연습", "the practice"},
    {"대회", "the contest"},
    {"기자|a 회견|b", "the press|a conference|b"},
});

inline constexpr auto kItems = std::to_array<Word>({
    {"우산", "umbrella"},
    {"가방", "bag"},
    {"의자", "chair"},
    {"시계", "watch"},
    {"자전거", "bicycle"},
    {"카메라", "camera"},
    {"안경", "pair of glasses"},
    {"책상", "desk"},
    {"모자", "hat"},
    {"코트", "coat"},
    {"그림", "painting"},
    {"반지", "ring"},
    {"컴퓨터", "computer"},
    {"냉장고", "refrigerator"},
    {"기타", "guitar"},
    {"램프", "lamp"},
    {"앞치마", "apron"},
    {"오븐", "oven"},
    {"지갑", "wallet"},
    {"목걸이", "necklace"},
    {"바이올린", "violin"},
    {"텐트", "tent"},
});

inline constexpr auto kTransports = std::to_array<Word>({
    {"기차", "train"},
    {"버스", "bus"},
    {"비행기", "plane"},
    {"배", "ferry"},
    {"택시", "taxi"},
    {"자동차", "car"},
});

inline constexpr auto kSubjects = std::to_array<Word>({
    {"한국어", "Korean"},
    {"영어", "English"},
    {"수학", "math"},
    {"과학", "science"},
    {"역사", "history"},
    {"음악", "music"},
    {"미술", "art"},
    {"철학", "philosophy"},
    {"화학", "chemistry"},
    {"경제학", "economics"},
    {"물리학", "physics"},
    {"지리", "geography"},
});

inline constexpr auto kWeekdays = std::to_array<Word>({
    {"일요일", "Sunday"},
    {"월요일", "Monday"},
    {"화요일", "Tuesday"},
    {"수요일", "Wednesday"},
    {"목요일", "Thursday"},
    {"금요일", "Friday"},
    {"토요일", "Saturday"},
});

inline constexpr auto kNearDays = std::to_array<Word>(
    {{"오늘", "today"}, {"내일", "tomorrow"}, {"모레", "the day after tomorrow"}});
inline constexpr auto kWeeks = std::to_array<Word>({{"이번 주", "this"}, {"다음 주", "next"}});

// Nouns that are counted with native numerals.
struct Counted {
  std::string_view korean, counter;   // 사과, 개; no name if the counter is enough: 세 명
  std::string_view singular, plural;  // apple, apples
};

inline constexpr auto kGoods = std::to_array<Counted>({
    {"사과", "개", "apple", "apples"},
    {"오렌지", "개", "orange", "oranges"},
    {"감자", "개", "potato", "potatoes"},
    {"상자", "개", "box", "boxes"},
    {"달걀", "개", "egg", "eggs"},
    {"물", "병", "bottle of water", "bottles of water"},
    {"주스", "병", "bottle of juice", "bottles of juice"},
    {"책", "권", "book", "books"},
    {"공책", "권", "notebook", "notebooks"},
    {"잡지", "권", "magazine", "magazines"},
    {"사전", "권", "dictionary", "dictionaries"},
    {"엽서", "장", "postcard", "postcards"},
    {"수건", "장", "towel", "towels"},
    {"사진", "장", "photo", "photos"},
    {"연필", "자루", "pencil", "pencils"},
    {"장미", "송이", "rose", "roses"},
    {"양말", "켤레", "pair of socks", "pairs of socks"},
    {"구두", "켤레", "pair of shoes", "pairs of shoes"},
    {"셔츠", "벌", "shirt", "shirts"},
    {"드레스", "벌", "dress", "dresses"},
});

inline constexpr auto kFood = std::to_array<Counted>({
    {"샌드위치", "개", "sandwich", "sandwiches"},
    {"햄버거", "개", "hamburger", "hamburgers"},
    {"피자", "조각", "slice of pizza", "slices of pizza"},
    {"케이크", "조각", "piece of cake", "pieces of cake"},
    {"김밥", "줄", "roll of gimbap", "rolls of gimbap"},
    {"비빔밥", "그릇", "bowl of bibimbap", "bowls of bibimbap"},
    {"냉면", "그릇", "bowl of cold noodles", "bowls of cold noodles"},
    {"만두", "접시", "plate of dumplings", "plates of dumplings"},
    {"샐러드", "접시", "plate of salad", "plates of salad"},
    {"떡볶이", "접시", "plate of tteokbokki", "plates of tteokbokki"},
});

inline constexpr auto kDrinks = std::to_array<Counted>({
    {"커피", "잔", "cup of coffee", "cups of coffee"},
    {"녹차", "잔", "cup of green tea", "cups of green tea"},
    {"홍차", "잔", "cup of black tea", "cups of black tea"},
    {"우유", "잔", "glass of milk", "glasses of milk"},
    {"맥주", "잔", "glass of beer", "glasses of beer"},
    {"와인", "잔", "glass of wine", "glasses of wine"},
    {"콜라", "캔", "can of cola", "cans of cola"},
    {"사이다", "캔", "can of soda", "cans of soda"},
});

inline constexpr auto kHeads = std::to_array<Counted>({{"", "명", "person", "people"}});
inline constexpr auto kTickets = std::to_array<Counted>({{"", "장", "ticket", "tickets"}});
inline constexpr auto kStops = std::to_array<Counted>({{"", "정거장", "stop", "stops"}});

}  // namespace nunchi::demo
