#include "nunchi/lab/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "nunchi/base/atomic_file.h"
#include "nunchi/base/error.h"
#include "nunchi/views/svg.h"

namespace nunchi::lab {
namespace {

const std::string& in(const Text& text, Language language) {
  return language == Language::ko ? text.ko : text.en;
}

std::filesystem::path write_file(const std::filesystem::path& path, const std::string& text) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
  return path;
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) throw Error("cannot make the folder " + folder.string() + ": " + failure.message());
}

// A cell with a comma, a quote or a line break is quoted (RFC 4180).
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

void add_row(std::string& out, const std::vector<std::string>& cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) out += (i > 0 ? "," : "") + csv_cell(cells[i]);
  out += "\n";
}

std::string verdict_line(const Report& report) {
  return fmt::format("Verdict: {} · 판정: {}   (seed {})",
                     verdict_text(report.verdict, Language::en),
                     verdict_text(report.verdict, Language::ko), report.seed);
}

std::string figure_text(double value) {
  if (!std::isfinite(value)) return "–";
  return fmt::format("{:.4g}", value);
}

// The drawing without its XML declaration, which HTML does not allow.
std::string inline_svg(const std::string& document) {
  const std::size_t begin = document.find("<svg");
  return begin == document.npos ? document : document.substr(begin);
}

constexpr const char* kStyle = R"(
:root { color-scheme: light; }
body { font: 16px/1.6 "Noto Sans KR", "Noto Sans CJK KR", "Apple SD Gothic Neo", "Malgun Gothic", sans-serif;
  color: #1b2027; background: #fff; margin: 0 auto; max-width: 1180px; padding: 1.5rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.3rem; margin-top: 3rem; border-top: 2px solid #1b2027; padding-top: 1rem; }
.both { display: grid; grid-template-columns: 1fr 1fr; gap: 1.5rem; }
@media (max-width: 760px) { .both { grid-template-columns: 1fr; } }
svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { border-bottom: 1px solid #c8ced6; padding: .2rem .7rem; text-align: left; }
td.number { text-align: right; }
.verdict { font-weight: 700; border: 1.5px solid #1b2027; padding: 0 .5rem; white-space: nowrap; }
.holds { background: #1b2027; color: #fff; } .partly { background: #d9dde2; }
pre { overflow-x: auto; background: #f4f5f7; padding: .8rem; font-size: 13px; line-height: 1.45; }
details { margin: 1rem 0; }
)";

// Line by line, because escaping replaces control characters.
std::string escaped_lines(const std::string& text) {
  std::string escaped;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    escaped += svg_escaped(text.substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  return escaped;
}

std::string paragraphs_html(const Report& report, Language language) {
  std::string html;
  const std::string text = paragraph(report, language);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) html += "<p>" + svg_escaped(text.substr(begin, end - begin)) + "</p>\n";
    begin = end + 1;
  }
  return html;
}

std::string section(const Report& report) {
  const Lab& lab = *report.lab;
  std::string html = fmt::format(
      "<section id=\"{0}\"><h2>{0} · {1}<br>{2}</h2>\n<p><span class=\"verdict {3}\">{4} · "
      "{5}</span> {6:.1f} s</p>\n",
      lab.name, svg_escaped(lab.question.en), svg_escaped(lab.question.ko), name_of(report.verdict),
      verdict_text(report.verdict, Language::en), verdict_text(report.verdict, Language::ko),
      report.seconds);
  html += "<div class=\"both\"><div lang=\"en\">" + paragraphs_html(report, Language::en) +
          "</div><div lang=\"ko\">" + paragraphs_html(report, Language::ko) + "</div></div>\n";
  html += inline_svg(picture(report)) + "\n";
  if (!report.result.log.empty()) html += "<pre>" + escaped_lines(report.result.log) + "</pre>\n";
  html += "<details><summary>Figures · 수치</summary><table>\n";
  for (const auto& [name, value] : report.result.figures) {
    html += fmt::format("<tr><td>{}</td><td class=\"number\">{}</td></tr>\n", svg_escaped(name),
                        figure_text(value));
  }
  return html + "</table></details></section>\n";
}

}  // namespace

Report run(const Lab& lab, const Options& options) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  Report report{.lab = &lab, .result = lab.run(options), .seed = options.seed};
  report.verdict = lab.judge(report.result.figures);
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return report;
}

std::string verdict_text(Verdict verdict, Language language) {
  const bool ko = language == Language::ko;
  switch (verdict) {
    case Verdict::holds:
      return ko ? "성립" : "holds";
    case Verdict::partly:
      return ko ? "부분 성립" : "holds partly";
    case Verdict::fails:
      return ko ? "성립하지 않음" : "does not hold";
  }
  return {};
}

std::string paragraph(const Report& report, Language language) {
  const Lab& lab = *report.lab;
  const char* format = language == Language::ko
                           ? "주장 ({}): {}\n측정: {}\n판정: {}. {}\n보이지 않은 것: {}\n"
                           : "Claim ({}): {}\nMeasured: {}\nVerdict: {}. {}\nNot shown: {}\n";
  return fmt::format(fmt::runtime(format), lab.note, in(lab.claim, language),
                     in(report.result.finding, language), verdict_text(report.verdict, language),
                     in(lab.rule, language), in(report.result.not_shown, language));
}

std::string picture(const Report& report) {
  return chart_sheet(report.result.charts,
                     {.title = fmt::format("{}: {}", report.lab->name, report.lab->question.en),
                      .subtitle = report.lab->question.ko,
                      .footer = {verdict_line(report)},
                      .panel_width = report.result.charts.size() == 1 ? 820.0 : 560.0});
}

std::string slide(const Report& report) {
  // Two charts at most fit at a size that the last row can read.
  std::vector<Chart> charts = report.result.charts;
  if (charts.size() > 2) charts.resize(2);
  return chart_sheet(charts, {.title = report.lab->question.ko,
                              .subtitle = report.lab->question.en,
                              .footer = {verdict_line(report)},
                              .font_size = 27,
                              .width = 1920,
                              .height = 1080});
}

std::string csv(const Table& table) {
  std::string out;
  add_row(out, table.columns);
  for (const auto& row : table.rows) add_row(out, row);
  return out;
}

std::string html(std::span<const Report> reports) {
  std::string out =
      "<!doctype html>\n<html lang=\"ko\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width\">\n<title>Nunchi lab · 눈치 실험</title><style>" +
      std::string(kStyle) +
      "</style></head><body>\n<h1>The notes as experiments<br>노트의 주장을 "
      "실험으로</h1>\n<table>\n<tr><th>lab</th><th>question · 질문</th><th>verdict · "
      "판정</th><th>s</th></tr>\n";
  for (const Report& report : reports) {
    const Lab& lab = *report.lab;
    out += fmt::format(
        "<tr><td><a href=\"#{0}\">{0}</a></td><td>{1}<br>{2}</td><td><span class=\"verdict "
        "{3}\">{4} · {5}</span></td><td class=\"number\">{6:.0f}</td></tr>\n",
        lab.name, svg_escaped(lab.question.en), svg_escaped(lab.question.ko),
        name_of(report.verdict), verdict_text(report.verdict, Language::en),
        verdict_text(report.verdict, Language::ko), report.seconds);
  }
  out += "</table>\n";
  for (const Report& report : reports) out += section(report);
  return out + "</body></html>\n";
}

std::vector<std::filesystem::path> write_files(const Report& report,
                                               const std::filesystem::path& folder, bool slides) {
  make_folder(folder);
  const std::string name(report.lab->name);
  std::vector<std::filesystem::path> files = {
      write_file(folder / (name + ".svg"), picture(report)),
      write_file(folder / (name + ".csv"), csv(report.result.table)),
      write_file(folder / (name + ".txt"), report.result.log + paragraph(report, Language::ko) +
                                               "\n" + paragraph(report, Language::en))};
  if (slides) files.push_back(write_file(folder / (name + "-slide.svg"), slide(report)));
  return files;
}

std::filesystem::path write_html(std::span<const Report> reports,
                                 const std::filesystem::path& folder) {
  make_folder(folder);
  return write_file(folder / "report.html", html(reports));
}

std::string json(const Report& report, std::span<const std::filesystem::path> files) {
  nlohmann::ordered_json figures = nlohmann::ordered_json::object();
  for (const auto& [name, value] : report.result.figures) figures[name] = value;
  std::vector<std::string> paths;
  for (const auto& file : files) paths.push_back(file.string());
  const nlohmann::ordered_json json = {{"lab", report.lab->name},
                                       {"claim", report.lab->claim.en},
                                       {"verdict", name_of(report.verdict)},
                                       {"figures", figures},
                                       {"seconds", report.seconds},
                                       {"files", paths}};
  return json.dump();
}

}  // namespace nunchi::lab
