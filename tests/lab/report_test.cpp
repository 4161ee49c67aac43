#include "nunchi/lab/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/errors.h"

namespace nunchi::testing {
namespace {

using lab::Language;

lab::Verdict judge_big(const lab::Figures& f) {
  return f["x"] > 1 ? lab::Verdict::holds : lab::Verdict::fails;
}

lab::Result run_small(const lab::Options&) {
  lab::Result result;
  result.figures.set("x", 2.5);
  result.figures.set("missing", NAN);
  result.log = "1 < 2\nnext\n";
  result.finding = {"x is 2.5.", "x는 2.5입니다."};
  result.not_shown = {"y & z.", "y와 z."};
  result.charts = {
      line_chart("A <chart>", {.label = "x (m)"}, {.label = "y (s)"}, {{"one", {1, 2}, {3, 4}}})};
  result.table.columns = {"a", "b"};
  result.table.add({"1,5", "say \"hi\""});
  return result;
}

const lab::Lab kLab = {.name = "small",
                       .note = "Note (노트)",
                       .question = {"Is x big?", "x는 클까?"},
                       .claim = {"x is big.", "x는 크다."},
                       .rule = {"It holds above 1.", "1보다 크면 성립합니다."},
                       .judge = judge_big,
                       .run = run_small};

lab::Report small_report() {
  CpuContext context({.threads = 1});
  return lab::run(kLab, {.context = context, .seed = 7});
}

TEST(LabReport, ParagraphsHaveClaimNumberVerdictAndWhatIsNotShown) {
  const lab::Report report = small_report();
  EXPECT_EQ(lab::paragraph(report, Language::en),
            "Claim (Note (노트)): x is big.\nMeasured: x is 2.5.\nVerdict: holds. It holds above "
            "1.\nNot shown: y & z.\n");
  EXPECT_EQ(lab::paragraph(report, Language::ko),
            "주장 (Note (노트)): x는 크다.\n측정: x는 2.5입니다.\n판정: 성립. 1보다 크면 "
            "성립합니다.\n보이지 않은 것: y와 z.\n");
}

TEST(LabReport, JsonHasTheFieldsThatScriptsRead) {
  const lab::Report report = small_report();
  const std::vector<std::filesystem::path> files = {"out/small.svg"};
  const auto json = nlohmann::json::parse(lab::json(report, files));
  EXPECT_EQ(json["lab"], "small");
  EXPECT_EQ(json["claim"], "x is big.");
  EXPECT_EQ(json["verdict"], "holds");
  EXPECT_EQ(json["figures"]["x"], 2.5);
  EXPECT_TRUE(json["figures"]["missing"].is_null());
  EXPECT_GE(json["seconds"].get<double>(), 0);
  EXPECT_EQ(json["files"][0], "out/small.svg");
}

TEST(LabReport, CsvQuotesCells) {
  EXPECT_EQ(lab::csv(small_report().result.table), "a,b\n\"1,5\",\"say \"\"hi\"\"\"\n");
}

TEST(LabReport, FilesAreWritten) {
  const TemporaryFolder folder;
  const lab::Report report = small_report();
  const auto files = lab::write_files(report, folder / "new" / "deeper", true);
  ASSERT_EQ(files.size(), 4u);
  for (const auto& file : files) EXPECT_TRUE(std::filesystem::exists(file)) << file;
  EXPECT_TRUE(says(content(folder / "new/deeper/small.svg"), "A &lt;chart&gt;"));
  EXPECT_TRUE(says(content(folder / "new/deeper/small.txt"), "판정: 성립"));
  const std::string slide = content(folder / "new/deeper/small-slide.svg");
  EXPECT_TRUE(says(slide, "width=\"1920\"") && says(slide, "height=\"1080\""))
      << slide.substr(0, 300);
}

TEST(LabReport, HtmlStandsAloneAndHasBothLanguages) {
  const std::vector<lab::Report> reports = {small_report()};
  const std::string html = lab::html(reports);
  EXPECT_TRUE(says(html, "x is 2.5.") && says(html, "x는 2.5입니다."));
  EXPECT_TRUE(says(html, "y &amp; z."));
  EXPECT_TRUE(says(html, "<pre>1 &lt; 2\nnext\n</pre>"));
  EXPECT_TRUE(says(html, "<svg"));
  for (const char* reference : {"src=", "<link", "@import", "url(", "<script"}) {
    EXPECT_FALSE(says(html, reference)) << reference;
  }
}

}  // namespace
}  // namespace nunchi::testing
