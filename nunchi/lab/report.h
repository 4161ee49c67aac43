// A lab's result as files and texts: NAME.svg, NAME.csv, paragraphs, JSON, a slide, report.html.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "nunchi/lab/lab.h"

namespace nunchi::lab {

enum class Language : std::uint8_t { en, ko };

// A lab that has run.
struct Report {
  const Lab* lab = nullptr;
  Result result;
  Verdict verdict = Verdict::fails;
  double seconds = 0;
  std::uint64_t seed = 1;
};

// Runs the lab and judges its figures.
Report run(const Lab& lab, const Options& options);

// The claim with its note, what was found, the verdict with its rule, what was not shown.
std::string paragraph(const Report& report, Language language);
// "holds", "성립"
std::string verdict_text(Verdict verdict, Language language);

std::string picture(const Report& report);  // SVG
std::string slide(const Report& report);    // SVG, 16:9, large type
std::string csv(const Table& table);
// Both languages side by side, with the pictures inside: one file without references.
std::string html(std::span<const Report> reports);

// Writes NAME.svg, NAME.csv and NAME.txt, with `slides` also NAME-slide.svg, to a folder, which is
// made if necessary. Returns the paths.
std::vector<std::filesystem::path> write_files(const Report& report,
                                               const std::filesystem::path& folder, bool slides);
// Writes report.html and returns its path.
std::filesystem::path write_html(std::span<const Report> reports,
                                 const std::filesystem::path& folder);

// One JSON object: lab, claim, verdict, figures, seconds, files. A figure that is not finite is
// null.
std::string json(const Report& report, std::span<const std::filesystem::path> files);

}  // namespace nunchi::lab
