// Checks the sources of nunchi/: which folder may include which, and other rules about includes and
// calls. Violations are reported as "file:line: rule".
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

// A folder may include itself and the folders before it.
constexpr std::array<std::string_view, 22> kFolders{
    "base",     "device", "tensor",    "kernels", "autograd", "ops",      "trace",      "nn",
    "text",     "media",  "data",      "models",  "interop",  "decoding", "evaluation", "inference",
    "training", "views",  "benchmark", "demo",    "lab",      "serve"};

// Headers that are slow to compile: only .cpp files may include them.
constexpr std::array<std::string_view, 5> kHeavy{"nlohmann/", "CLI/", "yaml-cpp/", "boost/",
                                                 "spdlog/"};

constexpr std::array<std::string_view, 3> kProductLibraries{"oneapi/dnnl", "dnnl.h", "cblas.h"};
constexpr std::string_view kProductFolder = "nunchi/kernels/cpu/";

// Only a program may end the process, write to stdout or handle signals. The exception ends a child
// process that it has started.
constexpr std::string_view kChildProcess = "nunchi/base/child_process.cpp";
constexpr std::array<std::string_view, 15> kProgramOnly{
    "exit(",     "_exit(",   "quick_exit(",   "abort(",   "terminate(",
    "std::cout", "stdout",   "printf(",       "fprintf(", "vprintf(",
    "puts(",     "putchar(", "fmt::print(\"", "signal(",  "sigaction("};

using Violations = std::vector<std::string>;

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

// The line from the first character at or after `from` that is not a space.
std::string_view skip_spaces(std::string_view line, std::size_t from) {
  return line.substr(std::min(line.find_first_not_of(" \t", from), line.size()));
}

// Replaces comments and the contents of literals by spaces, so that only code is checked. Keeps
// line breaks and the header names of #include.
std::string code_of(const std::string& text) {
  std::string code = text;
  std::size_t position = 0;
  const auto blank_to = [&](std::size_t end) {
    for (end = std::min(end, code.size()); position < end; ++position) {
      if (code[position] != '\n') code[position] = ' ';
    }
  };
  const auto end_of = [&](std::string_view closing, std::size_t from) {
    const std::size_t found = text.find(closing, from);
    return found == std::string::npos ? text.size() : found + closing.size();
  };
  while (position < text.size()) {
    const std::string_view rest = std::string_view(text).substr(position);
    if (rest.starts_with("//")) {
      blank_to(text.find('\n', position));
    } else if (rest.starts_with("/*")) {
      blank_to(end_of("*/", position + 2));
    } else if (rest.front() == '#' && skip_spaces(rest, 1).starts_with("include")) {
      position = std::min({text.find('\n', position), text.find("//", position),
                           text.find("/*", position), text.size()});
    } else if (rest.starts_with("R\"")) {
      const std::size_t open = text.find('(', position);
      const std::string delimiter = text.substr(position + 2, open - position - 2);
      blank_to(end_of(")" + delimiter + "\"", open));
    } else if (rest.front() == '"' ||
               (rest.front() == '\'' && (position == 0 || !is_word(text[position - 1])))) {
      const char quote = text[position++];  // the quotes themselves are kept
      std::size_t end = position;
      while (end < text.size() && text[end] != quote) end += text[end] == '\\' ? 2 : 1;
      blank_to(end);
      ++position;
    } else {
      ++position;
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
    const std::string_view directive = skip_spaces(line, 0);
    if (!directive.starts_with('#') || !skip_spaces(directive, 1).starts_with("include")) continue;
    const std::size_t open = line.find_first_of("<\"");
    if (open == std::string::npos) continue;
    const std::size_t close = line.find_first_of(">\"", open + 1);
    includes.push_back({number, line.substr(open + 1, close - open - 1), line[open] == '"'});
  }
  return includes;
}

// "ops" for nunchi/ops/linear.h; nullopt for a file that is not in a folder of nunchi/.
std::optional<std::string> folder_of(std::string_view path) {
  constexpr std::string_view kRoot = "nunchi/";
  if (!path.starts_with(kRoot)) return std::nullopt;
  path.remove_prefix(kRoot.size());
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  return std::string(path.substr(0, slash));
}

auto position_of(std::string_view folder) { return std::ranges::find(kFolders, folder); }
bool is_listed(std::string_view folder) { return position_of(folder) != kFolders.end(); }

std::string violation(const Source& source, int line, const std::string& what) {
  return source.path + ":" + std::to_string(line) + ": " + what;
}

Violations unknown_folders(const Source& source) {
  const auto folder = folder_of(source.path);
  if (!folder) return {violation(source, 1, "is not in a folder of nunchi/")};
  if (is_listed(*folder)) return {};
  return {violation(source, 1, "nunchi/" + *folder + " is not in the list of folders")};
}

Violations wrong_includes(const Source& source) {
  Violations violations;
  const std::string folder = folder_of(source.path).value_or("");
  for (const Include& include : includes_of(source)) {
    const auto report = [&](const std::string& what) {
      violations.push_back(violation(source, include.line, what));
    };
    const auto other = folder_of(include.header);
    if (include.header.starts_with("cli/")) {
      report("nunchi/" + folder + " includes cli (" + include.header + ")");
    } else if (include.quoted && !other) {
      report("\"" + include.header + "\" is not a path from the root, nunchi/FOLDER/FILE");
    } else if (other && !is_listed(*other)) {
      report("nunchi/" + folder + " includes nunchi/" + *other +
             ", which is not in the list of folders");
    } else if (other && is_listed(folder) && position_of(*other) > position_of(folder)) {
      report("nunchi/" + folder + " includes nunchi/" + *other + ", which is later in the list (" +
             include.header + ")");
    }
  }
  return violations;
}

Violations missing_pragma_once(const Source& source) {
  if (!source.is_header()) return {};
  const auto lines = lines_of(code_of(source.text));
  const bool found = std::ranges::any_of(
      lines, [](const std::string& line) { return line.starts_with("#pragma once"); });
  return found ? Violations{} : Violations{violation(source, 1, "a header without #pragma once")};
}

template <std::size_t N>
Violations includes_among(const Source& source, const std::array<std::string_view, N>& headers,
                          const std::string& why) {
  Violations violations;
  for (const Include& include : includes_of(source)) {
    if (std::ranges::any_of(headers, [&](auto h) { return include.header.starts_with(h); })) {
      violations.push_back(violation(source, include.line, include.header + " " + why));
    }
  }
  return violations;
}

Violations heavy_headers(const Source& source) {
  if (!source.is_header()) return {};
  return includes_among(source, kHeavy, "is slow to compile and belongs in .cpp files");
}

Violations product_libraries(const Source& source) {
  if (source.path.starts_with(kProductFolder)) return {};
  return includes_among(source, kProductLibraries, "belongs under " + std::string(kProductFolder));
}

// Whether the line uses the word as a global or std name: exit(), std::exit() and ::exit(), but not
// x.exit(), Scope::exit() or snprintf().
bool uses(std::string_view line, std::string_view word) {
  for (auto position = line.find(word); position != line.npos;
       position = line.find(word, position + 1)) {
    const std::size_t end = position + word.size();
    if (is_word(word.back()) && end < line.size() && is_word(line[end])) continue;
    std::string_view before = line.substr(0, position);
    if (before.ends_with("::")) before.remove_suffix(2);
    if (before.ends_with("std")) before.remove_suffix(3);
    if (before.empty()) return true;
    const char last = before.back();
    if (!is_word(last) && last != '.' && last != ':' && !before.ends_with("->")) return true;
  }
  return false;
}

Violations program_only_calls(const Source& source) {
  Violations violations;
  int number = 0;
  for (const std::string& line : lines_of(code_of(source.text))) {
    ++number;
    for (const std::string_view word : kProgramOnly) {
      if (!uses(line, word)) continue;
      if (source.path == kChildProcess && word == "_exit(") continue;
      violations.push_back(
          violation(source, number, "a library must not use " + std::string(word)));
    }
  }
  return violations;
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

// Runs the check on every source below the folder; fails with all violations, one per line.
void expect_none(const std::string& folder, Violations (*check)(const Source&)) {
  const auto sources = sources_in(folder);
  EXPECT_FALSE(sources.empty()) << "no sources below " << folder;
  std::string all;
  for (const Source& source : sources) {
    for (const std::string& line : check(source)) all += line + "\n";
  }
  EXPECT_TRUE(all.empty()) << all;
}

TEST(Layering, EveryFolderIsListed) { expect_none("nunchi", unknown_folders); }
TEST(Layering, AFolderIncludesOnlyItselfAndEarlierFolders) {
  expect_none("nunchi", wrong_includes);
}
TEST(Layering, EveryHeaderHasPragmaOnce) { expect_none("nunchi", missing_pragma_once); }
TEST(Layering, HeavyHeadersStayInCppFiles) { expect_none("nunchi", heavy_headers); }
TEST(Layering, OnlyCpuKernelsUseMatrixLibraries) {
  expect_none("nunchi", product_libraries);
  expect_none("cli", product_libraries);
}
TEST(Layering, TheLibraryUsesNoExitStdoutOrSignals) { expect_none("nunchi", program_only_calls); }

TEST(LayeringChecks, DetectAForbiddenInclude) {
  const Source source{"nunchi/ops/linear.cpp",
                      "// an op\n"
                      "#include \"nunchi/ops/linear.h\"\n"
                      "#include \"nunchi/kernels/product.h\"\n"
                      " #  include \"nunchi/nn/position/rotary.h\"  // forbidden\n"};
  EXPECT_EQ(
      wrong_includes(source),
      Violations{
          "nunchi/ops/linear.cpp:4: nunchi/ops includes nunchi/nn, which is later in the list "
          "(nunchi/nn/position/rotary.h)"});
}

TEST(LayeringChecks, DetectIncludesOutsideOfTheList) {
  const auto violations_in = [](const std::string& line) {
    return wrong_includes({"nunchi/serve/server.cpp", line}).size();
  };
  EXPECT_EQ(violations_in("#include \"nunchi/base/error.h\""), 0u);
  EXPECT_EQ(violations_in("#include <vector>"), 0u);
  EXPECT_EQ(violations_in("#include \"cli/train.h\""), 1u);
  EXPECT_EQ(violations_in("#include <cli/train.h>"), 1u);
  EXPECT_EQ(violations_in("#include \"../nn/linear.h\""), 1u);
  EXPECT_EQ(violations_in("#include \"nunchi/utils/strings.h\""), 1u);
}

TEST(LayeringChecks, IgnoreCommentsAndStrings) {
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

TEST(LayeringChecks, DetectUnknownFolders) {
  EXPECT_EQ(unknown_folders({"nunchi/utils/strings.h", ""}).size(), 1u);
  EXPECT_EQ(unknown_folders({"nunchi/nunchi.h", ""}).size(), 1u);
  EXPECT_TRUE(unknown_folders({"nunchi/kernels/cpu/norm.cpp", ""}).empty());
}

TEST(LayeringChecks, DetectForbiddenHeaders) {
  EXPECT_EQ(missing_pragma_once({"nunchi/nn/linear.h", "// #pragma once\n"}).size(), 1u);
  EXPECT_TRUE(missing_pragma_once({"nunchi/nn/linear.cpp", ""}).empty());
  const std::string json = "#pragma once\n#include <nlohmann/json.hpp>\n";
  EXPECT_EQ(heavy_headers({"nunchi/nn/linear.h", json}).size(), 1u);
  EXPECT_TRUE(heavy_headers({"nunchi/nn/linear.cpp", json}).empty());
  const std::string dnnl = "#include <oneapi/dnnl/dnnl.hpp>\n#include <cblas.h>\n";
  EXPECT_EQ(product_libraries({"nunchi/ops/linear.cpp", dnnl}).size(), 2u);
  EXPECT_TRUE(product_libraries({"nunchi/kernels/cpu/product.cpp", dnnl}).empty());
}

TEST(LayeringChecks, DetectForbiddenCalls) {
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
