// The order of the folders and the other rules about what may stand where in nunchi/, checked on
// the sources themselves. A complaint reads "file:line: what is wrong".
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/paths.h"

namespace {

namespace fs = std::filesystem;

// A folder includes itself and those before it.
constexpr std::array<std::string_view, 22> kFolders{
    "base",     "device", "tensor",    "kernels", "autograd", "ops",      "trace",      "nn",
    "text",     "media",  "data",      "models",  "interop",  "decoding", "evaluation", "inference",
    "training", "views",  "benchmark", "demo",    "lab",      "serve"};

// Headers that cost the build: .cpp files only.
constexpr std::array<std::string_view, 5> kHeavy{"nlohmann/", "CLI/", "yaml-cpp/", "boost/",
                                                 "spdlog/"};

constexpr std::array<std::string_view, 3> kProductLibraries{"oneapi/dnnl", "dnnl.h", "cblas.h"};
constexpr std::string_view kMayUseProducts = "nunchi/kernels/cpu/";

// What only a program may do: end the process, write to stdout, handle signals.
constexpr std::array<std::string_view, 15> kProgramOnly{
    "exit(",     "_exit(",   "quick_exit(",   "abort(",   "terminate(",
    "std::cout", "stdout",   "printf(",       "fprintf(", "vprintf(",
    "puts(",     "putchar(", "fmt::print(\"", "signal(",  "sigaction("};

using Complaints = std::vector<std::string>;

struct Source {
  std::string path;  // from the root of the checkout, e.g. nunchi/base/error.h
  std::string text;

  bool is_header() const { return path.ends_with(".h") || path.ends_with(".cuh"); }
};

struct Include {
  int line;
  std::string header;
  bool quoted;
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The line from the first character at or after `from` that is no space.
std::string_view word_after(std::string_view line, std::size_t from) {
  return line.substr(std::min(line.find_first_not_of(" \t", from), line.size()));
}

// The code with comments and the insides of literals blanked, so that only code is judged. Lines
// stay lines, and an #include keeps its header's name.
std::string code_of(const std::string& text) {
  std::string code = text;
  std::size_t at = 0;
  const auto blank_to = [&](std::size_t end) {
    for (end = std::min(end, code.size()); at < end; ++at) {
      if (code[at] != '\n') code[at] = ' ';
    }
  };
  const auto after = [&](std::string_view closing, std::size_t from) {
    const std::size_t found = text.find(closing, from);
    return found == std::string::npos ? text.size() : found + closing.size();
  };
  while (at < text.size()) {
    const std::string_view rest = std::string_view(text).substr(at);
    if (rest.starts_with("//")) {
      blank_to(text.find('\n', at));
    } else if (rest.starts_with("/*")) {
      blank_to(after("*/", at + 2));
    } else if (rest.front() == '#' && word_after(rest, 1).starts_with("include")) {
      at = std::min({text.find('\n', at), text.find("//", at), text.find("/*", at), text.size()});
    } else if (rest.starts_with("R\"")) {
      const std::size_t open = text.find('(', at);
      const std::string delimiter = text.substr(at + 2, open - at - 2);
      blank_to(after(")" + delimiter + "\"", open));
    } else if (rest.front() == '"' ||
               (rest.front() == '\'' && (at == 0 || !is_word(text[at - 1])))) {
      const char quote = text[at++];  // stays, as does its partner
      std::size_t end = at;
      while (end < text.size() && text[end] != quote) end += text[end] == '\\' ? 2 : 1;
      blank_to(end);
      ++at;
    } else {
      ++at;
    }
  }
  return code;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<Include> includes_of(const Source& source) {
  std::vector<Include> includes;
  int number = 0;
  for (const std::string& line : lines_of(code_of(source.text))) {
    ++number;
    const std::string_view directive = word_after(line, 0);
    if (!directive.starts_with('#') || !word_after(directive, 1).starts_with("include")) continue;
    const std::size_t open = line.find_first_of("<\"");
    if (open == std::string::npos) continue;
    const std::size_t close = line.find_first_of(">\"", open + 1);
    includes.push_back({number, line.substr(open + 1, close - open - 1), line[open] == '"'});
  }
  return includes;
}

// "ops" of nunchi/ops/linear.h; nothing for a file that stands in no folder of nunchi/.
std::optional<std::string> folder_of(std::string_view path) {
  constexpr std::string_view kRoot = "nunchi/";
  if (!path.starts_with(kRoot)) return std::nullopt;
  path.remove_prefix(kRoot.size());
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  return std::string(path.substr(0, slash));
}

auto place_of(std::string_view folder) { return std::ranges::find(kFolders, folder); }
bool has_place(std::string_view folder) { return place_of(folder) != kFolders.end(); }

std::string complaint(const Source& source, int line, const std::string& what) {
  return source.path + ":" + std::to_string(line) + ": " + what;
}

Complaints unknown_folders(const Source& source) {
  const auto folder = folder_of(source.path);
  if (!folder) return {complaint(source, 1, "stands in no folder of nunchi/")};
  if (has_place(*folder)) return {};
  return {complaint(source, 1, "nunchi/" + *folder + " has no place in the order of folders")};
}

Complaints wrong_includes(const Source& source) {
  Complaints complaints;
  const std::string folder = folder_of(source.path).value_or("");
  for (const Include& include : includes_of(source)) {
    const auto complain = [&](const std::string& what) {
      complaints.push_back(complaint(source, include.line, what));
    };
    const auto other = folder_of(include.header);
    if (include.header.starts_with("cli/")) {
      complain("nunchi/" + folder + " includes cli (" + include.header + ")");
    } else if (include.quoted && !other) {
      complain("\"" + include.header + "\" is not a path from the root, nunchi/FOLDER/FILE");
    } else if (other && !has_place(*other)) {
      complain("nunchi/" + folder + " includes nunchi/" + *other +
               ", which has no place in the order of folders");
    } else if (other && has_place(folder) && place_of(*other) > place_of(folder)) {
      complain("nunchi/" + folder + " includes nunchi/" + *other + ", which stands below it (" +
               include.header + ")");
    }
  }
  return complaints;
}

Complaints missing_pragma_once(const Source& source) {
  if (!source.is_header()) return {};
  const auto lines = lines_of(code_of(source.text));
  const bool found = std::ranges::any_of(
      lines, [](const std::string& line) { return line.starts_with("#pragma once"); });
  return found ? Complaints{} : Complaints{complaint(source, 1, "a header without #pragma once")};
}

template <std::size_t N>
Complaints includes_among(const Source& source, const std::array<std::string_view, N>& headers,
                          const std::string& why) {
  Complaints complaints;
  for (const Include& include : includes_of(source)) {
    if (std::ranges::any_of(headers, [&](auto h) { return include.header.starts_with(h); })) {
      complaints.push_back(complaint(source, include.line, include.header + " " + why));
    }
  }
  return complaints;
}

Complaints heavy_headers(const Source& source) {
  if (!source.is_header()) return {};
  return includes_among(source, kHeavy, "is heavy and belongs in .cpp files");
}

Complaints product_libraries(const Source& source) {
  if (source.path.starts_with(kMayUseProducts)) return {};
  return includes_among(source, kProductLibraries, "belongs under " + std::string(kMayUseProducts));
}

// Whether the word stands in the line, as a free name: x.exit(), Scope::exit() and snprintf() are
// other things, std::exit() and ::exit() are not.
bool uses(std::string_view line, std::string_view word) {
  for (auto at = line.find(word); at != line.npos; at = line.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if (is_word(word.back()) && end < line.size() && is_word(line[end])) continue;
    std::string_view before = line.substr(0, at);
    if (before.ends_with("::")) before.remove_suffix(2);
    if (before.ends_with("std")) before.remove_suffix(3);
    if (before.empty()) return true;
    const char last = before.back();
    if (!is_word(last) && last != '.' && last != ':' && !before.ends_with("->")) return true;
  }
  return false;
}

Complaints program_only_calls(const Source& source) {
  Complaints complaints;
  int number = 0;
  for (const std::string& line : lines_of(code_of(source.text))) {
    ++number;
    for (const std::string_view word : kProgramOnly) {
      if (!uses(line, word)) continue;
      complaints.push_back(
          complaint(source, number, "a library has no use for " + std::string(word)));
    }
  }
  return complaints;
}

// The sources below a folder of the checkout, in a fixed order.
std::vector<Source> sources_in(const std::string& folder) {
  constexpr std::array<std::string_view, 4> kEndings{".h", ".cpp", ".cuh", ".cu"};
  const fs::path root = NUNCHI_SOURCE_DIR;
  std::vector<Source> sources;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    const std::string ending = entry.path().extension().string();
    if (!entry.is_regular_file() || std::ranges::find(kEndings, ending) == kEndings.end()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    sources.push_back({entry.path().lexically_relative(root).generic_string(),
                       {std::istreambuf_iterator<char>(file), {}}});
  }
  std::ranges::sort(sources, {}, &Source::path);
  return sources;
}

// Runs the check over every source below the folder; fails with all complaints, one a line.
void expect_none(const std::string& folder, Complaints (*check)(const Source&)) {
  const auto sources = sources_in(folder);
  EXPECT_FALSE(sources.empty()) << "no sources below " << folder;
  std::string all;
  for (const Source& source : sources) {
    for (const std::string& line : check(source)) all += line + "\n";
  }
  EXPECT_TRUE(all.empty()) << all;
}

TEST(Layering, EveryFolderHasItsPlace) { expect_none("nunchi", unknown_folders); }
TEST(Layering, AFolderIncludesOnlyThoseAboveIt) { expect_none("nunchi", wrong_includes); }
TEST(Layering, EveryHeaderIsReadOnce) { expect_none("nunchi", missing_pragma_once); }
TEST(Layering, HeavyHeadersStayInCppFiles) { expect_none("nunchi", heavy_headers); }
TEST(Layering, ProductLibrariesStayBehindTheCpuKernels) {
  expect_none("nunchi", product_libraries);
  expect_none("cli", product_libraries);
}
TEST(Layering, TheLibraryLeavesExitStdoutAndSignalsToTheProgram) {
  expect_none("nunchi", program_only_calls);
}

TEST(LayeringChecks, FindAPlantedInclude) {
  const Source planted{"nunchi/ops/linear.cpp",
                       "// an op\n"
                       "#include \"nunchi/ops/linear.h\"\n"
                       "#include \"nunchi/kernels/product.h\"\n"
                       " #  include \"nunchi/nn/position/rotary.h\"  // upside down\n"};
  EXPECT_EQ(
      wrong_includes(planted),
      Complaints{"nunchi/ops/linear.cpp:4: nunchi/ops includes nunchi/nn, which stands below it "
                 "(nunchi/nn/position/rotary.h)"});
}

TEST(LayeringChecks, FindIncludesThatGoAroundTheOrder) {
  const auto complaints_about = [](const std::string& line) {
    return wrong_includes({"nunchi/serve/server.cpp", line}).size();
  };
  EXPECT_EQ(complaints_about("#include \"nunchi/base/error.h\""), 0u);
  EXPECT_EQ(complaints_about("#include <vector>"), 0u);
  EXPECT_EQ(complaints_about("#include \"cli/train.h\""), 1u);
  EXPECT_EQ(complaints_about("#include <cli/train.h>"), 1u);
  EXPECT_EQ(complaints_about("#include \"../nn/linear.h\""), 1u);
  EXPECT_EQ(complaints_about("#include \"nunchi/utils/strings.h\""), 1u);
}

TEST(LayeringChecks, PassOverCommentsAndStrings) {
  const Source source{"nunchi/base/error.cpp",
                      "/* #include \"nunchi/serve/server.h\"\n"
                      "#include \"nunchi/serve/server.h\" */\n"
                      "// printf(\"\")\n"
                      "auto text = \"\\\"printf(\";\n"
                      "auto raw = R\"x(\n#include \"nunchi/serve/server.h\"\nabort())\")x\";\n"
                      "int million = 1'000'000; char quote = '\"';\n"
                      "#include \"nunchi/serve/page.h\"\n"};
  EXPECT_EQ(wrong_includes(source).size(), 1u);
  EXPECT_TRUE(program_only_calls(source).empty());
}

TEST(LayeringChecks, FindFilesOutOfPlace) {
  EXPECT_EQ(unknown_folders({"nunchi/utils/strings.h", ""}).size(), 1u);
  EXPECT_EQ(unknown_folders({"nunchi/nunchi.h", ""}).size(), 1u);
  EXPECT_TRUE(unknown_folders({"nunchi/kernels/cpu/norm.cpp", ""}).empty());
}

TEST(LayeringChecks, FindPlantedHeaders) {
  EXPECT_EQ(missing_pragma_once({"nunchi/nn/linear.h", "// #pragma once\n"}).size(), 1u);
  EXPECT_TRUE(missing_pragma_once({"nunchi/nn/linear.cpp", ""}).empty());
  const std::string json = "#pragma once\n#include <nlohmann/json.hpp>\n";
  EXPECT_EQ(heavy_headers({"nunchi/nn/linear.h", json}).size(), 1u);
  EXPECT_TRUE(heavy_headers({"nunchi/nn/linear.cpp", json}).empty());
  const std::string dnnl = "#include <oneapi/dnnl/dnnl.hpp>\n#include <cblas.h>\n";
  EXPECT_EQ(product_libraries({"nunchi/ops/linear.cpp", dnnl}).size(), 2u);
  EXPECT_TRUE(product_libraries({"nunchi/kernels/cpu/product.cpp", dnnl}).empty());
}

TEST(LayeringChecks, FindPlantedCalls) {
  const auto found = [](const std::string& line) {
    return !program_only_calls({"nunchi/base/error.cpp", line}).empty();
  };
  for (const std::string line :
       {"std::exit(1);", "if (bad) exit(1);", "::abort();", "std::cout << x;",
        "std::printf(\"x\");", "fprintf(stderr, \"x\");", "fmt::print(\"x\");",
        "fmt::print(stdout, \"x\");", "std::signal(SIGINT, f);",
        "::sigaction(SIGINT, &a, nullptr);"}) {
    EXPECT_TRUE(found(line)) << line;
  }
  for (const std::string line :
       {"snprintf(buffer, 8, format);", "fmt::format(\"{}\", x);", "fmt::print(stderr, \"x\");",
        "scope.exit();", "scope->abort();", "Scope::exit();", "int stdout_width;"}) {
    EXPECT_FALSE(found(line)) << line;
  }
}

}  // namespace
