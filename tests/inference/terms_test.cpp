#include "nunchi/inference/terms.h"

#include "nunchi/kernels/product.h"
#include "nunchi/text/unicode.h"
#include "tests/inference/small_translation.h"

namespace nunchi::testing {
namespace {

using Texts = std::vector<std::string>;

TEST(TermList, FindsWholeWordsLongestFirst) {
  const TermList list(
      {{"dog", "Hund", "t:1"}, {"guide dog", "Blindenhund", "t:2"}, {"C++", "C++", "t:3"}});
  EXPECT_EQ(list.targets_in("a dog and a guide dog, dogs, Dog, hotdog, dog-house"),
            (Texts{"Hund", "Blindenhund", "Hund"}));
  EXPECT_EQ(list.targets_in("(dog) \"dog\""), (Texts{"Hund", "Hund"}));
  EXPECT_EQ(list.targets_in("C++17 and C++."), (Texts{"C++", "C++"}));
  EXPECT_EQ(list.targets_in("ObjC++"), (Texts{}));
  EXPECT_EQ(list.targets_in(""), Texts{});
  EXPECT_EQ(TermList({}).targets_in("a dog"), Texts{});
}

TEST(TermList, UnicodeLettersBelongToWords) {
  const TermList list(
      {{"caf\u00E9", "Caf\u00E9", ""}, {"서울", "Seoul", ""}, {"東京", "Tokyo", ""}});
  EXPECT_EQ(list.targets_in("cafe\u0301 caf\u00E9s"), Texts{"Caf\u00E9"});  // NFC
  EXPECT_EQ(list.targets_in("서울 서울에서"), Texts{"Seoul"});
  EXPECT_EQ(list.targets_in("私は東京に住む"), Texts{"Tokyo"});  // no spaces, no word limits
  EXPECT_EQ(list.targets_in("\xFF서울\xFF"), Texts{"Seoul"});
}

TEST(TermList, IsReadFromAFile) {
  const TemporaryFolder folder;
  write_text(folder / "terms.tsv",
             "dog\tHund\n\ntwo men\tzwei Männer\r\nNunchi\tNunchi\ndog\tHund\n");
  const TermList list = TermList::read(folder / "terms.tsv");
  EXPECT_EQ(list.targets_in("Nunchi: two men"), (Texts{"Nunchi", "zwei Männer"}));
  EXPECT_EQ(list.terms()[1].where, (folder / "terms.tsv").string() + ":3");
}

TEST(TermList, TheErrorNamesTheLine) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& text) {
    write_text(folder / "terms.tsv", text);
    return error_of([&] { TermList::read(folder / "terms.tsv"); });
  };
  EXPECT_TRUE(says(refusal("a\tb\ndog\n"), "terms.tsv:2: a line of terms must be"));
  EXPECT_TRUE(says(refusal("a\tb\tc\n"), "terms.tsv:1: a line of terms must be"));
  EXPECT_TRUE(says(refusal("a\t\n"), "terms.tsv:1: a term is empty"));
  EXPECT_TRUE(says(refusal("a\tb\na\tc\n"), "terms.tsv:2: the term 'a' has the target 'b'"));
  EXPECT_TRUE(says(error_of([] { TermList::read("/missing/terms.tsv"); }), "/missing/terms.tsv"));
}

TEST(InlineTerms, AreReadAndRemoved) {
  const auto read = [](const std::string& line) {
    const auto found = read_inline_terms(line);
    std::string all = found ? found->text : "unreadable";
    if (found) {
      for (const std::string& target : found->targets) all += "|" + target;
    }
    return all;
  };
  EXPECT_EQ(read("a dog"), "a dog");
  EXPECT_EQ(read("a <term target=\"Hund\">dog</term> runs"), "a dog runs|Hund");
  EXPECT_EQ(read("<term>Nunchi</term>"), "Nunchi|Nunchi");
  EXPECT_EQ(read("<term target=\"a &quot;b&quot; &amp;lt;\">x &lt; y</term> &gt; &other; & < >"),
            "x < y > &other; & < >|a \"b\" &lt;");
  EXPECT_EQ(read("<terms> <termite"), "<terms> <termite");
  for (const char* wrong :
       {"<term>dog", "dog</term>", "<term target=\"Hund>dog</term>", "<term target=>x</term>",
        "<term other=\"x\">dog</term>", "<term></term>", "<term target=\"\">dog</term>",
        "<term>a <term>b</term></term>", "<term target=\"a\" x>b</term>"}) {
    EXPECT_EQ(read(wrong), "unreadable") << wrong;
  }
}

TEST(RequiredPhrase, HasTheTokensOfTheTermInContext) {
  const auto spm = byte_tokenizer();
  const auto phrase = required_phrase(*spm, "the fox");
  ASSERT_TRUE(phrase);
  EXPECT_EQ(phrase->forms[0], spm->encode("the fox"));
  for (const Tokens& form : phrase->forms) EXPECT_EQ(spm->decode(form), "the fox");
  EXPECT_TRUE(required_phrase(*spm, "눈치"));  // as bytes

  const auto characters =
      make_tokenizer(learned_bytes({.kind = TokenizerKind::characters}), "characters");
  const auto spelled = required_phrase(*characters, "fox");
  ASSERT_TRUE(spelled);
  EXPECT_EQ(spelled->forms,
            (std::vector<Tokens>{characters->encode(" fox"), characters->encode("fox")}));
  EXPECT_FALSE(required_phrase(*characters, "눈치"));
  EXPECT_FALSE(required_phrase(*letter_tokenizer(), "fox 3"));
}

int occurrences(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

TEST(TranslatorTerms, TranslationsContainThem) {
  SmallTranslation s;
  const auto list = std::make_shared<const TermList>(
      std::vector<Term>{{"dog", "zebra", ""}, {"old fox", "눈치 3", ""}});
  for (const int beam : {1, 3}) {
    Translator translator = s.translator(
        {.search = {.beam_size = beam, .max_length = 12}, .terms = list, .inline_terms = true});
    const auto found = translator.translate(lines_of(
        {"the old fox sees the dog and the dog", "a <term target=\"walk\">man</term> and a dog",
         "a <term>X-7</term>", "a woman"}));
    EXPECT_EQ(occurrences(found[0][0].text, "zebra"), 2) << found[0][0].text;
    EXPECT_EQ(occurrences(found[0][0].text, "눈치 3"), 1) << found[0][0].text;
    EXPECT_GE(occurrences(found[1][0].text, "walk"), 1) << found[1][0].text;
    EXPECT_GE(occurrences(found[1][0].text, "zebra"), 1) << found[1][0].text;
    EXPECT_GE(occurrences(found[2][0].text, "X-7"), 1) << found[2][0].text;
    EXPECT_EQ(translator.counts().terms + translator.counts().markup, 0);
    // A line without terms is translated as without the option.
    EXPECT_TRUE(
        same(found[3][0],
             s.translator({.search = {.beam_size = beam, .max_length = 12}}).translate("a woman")));
  }
}

TEST(TranslatorTerms, ALineIsTheSameInEveryBatchAndOrder) {
  if (!kernels::rows_are_independent())
    GTEST_SKIP() << "GEMM results depend on the number of rows here";
  SmallTranslation s;
  const TranslatorOptions options{
      .search = {.beam_size = 3, .n_best = 2, .max_length = 12},
      .terms = std::make_shared<const TermList>(
          std::vector<Term>{{"dog", "zebra", ""}, {"fox", "old tree", ""}, {"man", "vex", ""}})};
  const std::vector<SourceLine> lines = lines_of(some_texts());
  const auto together = s.translator(options).translate(lines);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto alone = s.translator(options).translate(std::span(&lines[i], 1))[0];
    ASSERT_EQ(alone.size(), together[i].size());
    for (std::size_t j = 0; j < alone.size(); ++j) {
      EXPECT_TRUE(same(alone[j], together[i][j])) << "line " << i;
    }
  }
}

TEST(TranslatorTerms, TermsThatDoNotFitAreLeftOutAndCounted) {
  SmallTranslation s;
  Translator translator =
      s.translator({.search = {.beam_size = 2, .max_length = 12}, .inline_terms = true});
  std::string many;
  for (int i = 0; i < 17; ++i) many += "<term>a</term> ";
  const auto found = translator.translate(lines_of({many, "<term>dog", "<term>dog</term>"}));
  EXPECT_GE(occurrences(found[0][0].text, "a"), 16);
  EXPECT_EQ(translator.counts().terms, 1);
  EXPECT_EQ(translator.counts().markup, 1);
  SmallTranslation letters(letter_tokenizer());
  Translator other =
      letters.translator({.search = {.beam_size = 2, .max_length = 12}, .inline_terms = true});
  other.translate("a <term>3</term>");
  EXPECT_EQ(other.counts().terms, 1);
}

TEST(TranslatorTerms, WrongListsAndSamplingAreRefused) {
  SmallTranslation letters(letter_tokenizer());
  const auto list =
      std::make_shared<const TermList>(std::vector<Term>{{"dog", "Hund 3", "terms.tsv:7"}});
  EXPECT_TRUE(says(error_of([&] { letters.translator({.terms = list}); }),
                   "terms.tsv:7: the model's target tokenizer cannot spell 'Hund 3'"));
  SmallTranslation s;
  EXPECT_TRUE(
      says(error_with_kind([&] { s.translator({.search = {.sample = true}, .terms = list}); }),
           "usage: terms need a search"));
}

}  // namespace
}  // namespace nunchi::testing
