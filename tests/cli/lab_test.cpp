// `nunchi lab`.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nunchi/lab/lab.h"
#include "tests/cli/program.h"
#include "tests/errors.h"

namespace nunchi::testing {
namespace {

namespace fs = std::filesystem;

TEST(LabProgram, WithoutANameListsTheLabs) {
  const ProgramResult list = run("lab");
  EXPECT_EQ(list.code, 0) << list.error;
  for (const lab::Lab& one : lab::labs()) {
    EXPECT_TRUE(says(list.out, one.question.en)) << one.name;
    EXPECT_TRUE(says(list.out, one.question.ko)) << one.name;
  }
}

TEST(LabProgram, WritesFilesAndJson) {
  const TemporaryFolder folder;
  const ProgramResult result =
      run("lab positions --json --slides --output " + (folder / "out").string());
  ASSERT_EQ(result.code, 0) << result.error;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["lab"], "positions");
  EXPECT_EQ(json["verdict"], "partly");
  EXPECT_NEAR(json["figures"]["distance_3_4"].get<double>(), 3.71, 0.01);
  ASSERT_EQ(json["files"].size(), 4u);
  for (const auto& file : json["files"]) EXPECT_TRUE(fs::exists(file.get<std::string>())) << file;
}

TEST(LabProgram, PrintsBothLanguages) {
  const TemporaryFolder folder;
  const ProgramResult result = run("lab worked --output " + folder.path().string());
  EXPECT_EQ(result.code, 0) << result.error;
  EXPECT_TRUE(says(result.out, "Verdict: holds partly") && says(result.out, "판정: 부분 성립"))
      << result.out;
  EXPECT_TRUE(says(result.out, "[4.37, -1.01]")) << result.out;
}

TEST(LabProgram, UnknownLabIsAWrongCall) {
  const ProgramResult result = run("lab position");
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(says(result.error, "did you mean 'positions'?")) << result.error;
}

TEST(LabProgram, FolderThatCannotBeMadeIsReported) {
  const TemporaryFolder folder;
  write_text(folder / "file", "mine");
  const ProgramResult result = run("lab worked --output " + (folder / "file").string());
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(says(result.error, "cannot make the folder")) << result.error;
  EXPECT_EQ(content(folder / "file"), "mine");
}

}  // namespace
}  // namespace nunchi::testing
