#include "nunchi/decoding/generation_config.h"

#include <gtest/gtest.h>

#include "tests/errors.h"
#include "tests/files.h"

namespace nunchi::testing {
namespace {

TEST(GenerationConfig, IsReadAsItWasWritten) {
  const TemporaryFolder folder;
  save_generation_config(
      {.beam_size = 5, .normalize = 0.6, .min_length = 2, .max_length = 77, .no_repeat_ngram = 3},
      {}, folder.path());
  const SearchOptions read = load_generation_config(folder.path());
  EXPECT_EQ(read.beam_size, 5);
  EXPECT_EQ(read.normalize, 0.6);
  EXPECT_EQ(read.min_length, 2);
  EXPECT_EQ(read.max_length, 77);
  EXPECT_EQ(read.no_repeat_ngram, 3);
}

TEST(GenerationConfig, MissingKeysKeepTheirDefaults) {
  const TemporaryFolder folder;
  EXPECT_EQ(load_generation_config(folder.path()).beam_size, 1);
  write_text(folder / "generation_config.json", "{\"length_penalty\": 2}");
  const SearchOptions read = load_generation_config(folder.path());
  EXPECT_EQ(read.normalize, 2);
  EXPECT_EQ(read.beam_size, SearchOptions().beam_size);
  EXPECT_EQ(read.max_length, SearchOptions().max_length);
}

// An Error and not a UsageError: the file is wrong, not the call.
TEST(GenerationConfig, AnInvalidFileIsAnErrorThatNamesIt) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "generation_config.json";
  for (const auto& [text, because] :
       {std::pair{"", "not valid JSON"},
        {"{\"num_beams\": ", "not valid JSON"},
        {"[]", "object"},
        {"{\"num_beams\": 0}", "'num_beams' must be a whole number from 1 to 4096"},
        {"{\"num_beams\": \"four\"}", "'num_beams' must be a whole number from 1 to 4096"},
        {"{\"num_beams\": 1.5}", "'num_beams'"},
        {"{\"length_penalty\": -1}", "'length_penalty'"},
        {"{\"num_beam\": 4}", "Did you mean 'num_beams'?"},
        {"{\"min_length\": 9, \"max_length\": 8}", "at least the minimum length (9)"}}) {
    write_text(path, text);
    try {
      load_generation_config(folder.path());
      ADD_FAILURE() << text << " was read";
    } catch (const UsageError& error) {
      ADD_FAILURE() << "a UsageError was thrown: " << error.what();
    } catch (const Error& error) {
      EXPECT_TRUE(says(error.what(), because)) << error.what();
      EXPECT_TRUE(says(error.what(), path.string())) << error.what();
    }
  }
}

TEST(GenerationConfig, AlsoHoldsSpecialTokens) {
  const TemporaryFolder folder;
  const GenerationTokens tokens{
      .begin = 9, .end = 4, .pad = 7, .decoder_start = 7, .forced_first = 12, .suppressed = {3, 5}};
  save_generation_config({.beam_size = 5}, tokens, folder.path());
  EXPECT_EQ(load_generation_tokens(folder.path()), tokens);
  EXPECT_EQ(load_generation_config(folder.path()).beam_size, 5);
  // Without special tokens the file has no keys for them.
  save_generation_config({}, {}, folder.path());
  EXPECT_EQ(content(folder / kGenerationConfig).find("token"), std::string::npos);
  EXPECT_EQ(load_generation_tokens(folder.path()), GenerationTokens());
  EXPECT_EQ(load_generation_tokens(folder / "missing"), GenerationTokens());
  write_text(folder / kGenerationConfig, "{\"suppress_tokens\": [1, -2]}");
  EXPECT_TRUE(says(error_of([&] { load_generation_tokens(folder.path()); }), "whole numbers"));
}

TEST(GenerationConfig, AlsoHoldsTheHeadsThatAlignWords) {
  const TemporaryFolder folder;
  const GenerationTokens tokens{.end = 4, .suppressed = {3, 5}};
  const AlignmentHeads heads{{2, 0}, {3, 11}};
  const TypicalScores typical{.median = -0.4375, .low = -1.5};
  save_generation_config({.beam_size = 5}, tokens, folder.path(), typical);
  EXPECT_EQ(load_alignment_heads(folder.path()), AlignmentHeads());
  save_alignment_heads(heads, folder.path());
  EXPECT_EQ(load_alignment_heads(folder.path()), heads);
  // The other keys are kept.
  EXPECT_EQ(load_generation_config(folder.path()).beam_size, 5);
  EXPECT_EQ(load_generation_tokens(folder.path()), tokens);
  EXPECT_EQ(load_typical_scores(folder.path()), typical);
  save_alignment_heads({}, folder.path());
  EXPECT_EQ(content(folder / kGenerationConfig).find("alignment"), std::string::npos);
  EXPECT_EQ(load_alignment_heads(folder / "missing"), AlignmentHeads());
}

TEST(GenerationConfig, RefusesHeadsThatAreNotPairs) {
  const TemporaryFolder folder;
  for (const char* wrong : {"3", "[3]", "[[1]]", "[[1, 2, 3]]", "[[1, -1]]", "[[1, \"a\"]]",
                            "[[0, 70000]]", "{\"a\": 1}"}) {
    write_text(folder / kGenerationConfig, std::string("{\"alignment_heads\": ") + wrong + "}");
    for (const std::string& error : {error_of([&] { load_alignment_heads(folder.path()); }),
                                     error_of([&] { load_generation_config(folder.path()); })}) {
      EXPECT_TRUE(says(error, "'alignment_heads' must be a list of pairs")) << wrong << error;
    }
  }
}

TEST(GenerationConfig, AlsoHoldsTypicalScores) {
  const TemporaryFolder folder;
  const TypicalScores typical{.median = -0.4375, .low = -1.5};
  save_generation_config({.beam_size = 5}, {.end = 4}, folder.path(), typical);
  EXPECT_EQ(load_typical_scores(folder.path()), typical);
  EXPECT_EQ(load_generation_config(folder.path()).beam_size, 5);
  EXPECT_EQ(load_generation_tokens(folder.path()).end, 4);
  save_generation_config({}, {}, folder.path());
  EXPECT_EQ(load_typical_scores(folder.path()), std::nullopt);
  EXPECT_EQ(load_typical_scores(folder / "missing"), std::nullopt);
  write_text(folder / kGenerationConfig, "{\"typical_scores\": {\"median\": 1}}");
  EXPECT_TRUE(says(error_of([&] { load_generation_config(folder.path()); }), "median"));
  EXPECT_TRUE(says(error_of([&] { load_typical_scores(folder.path()); }), "median"));
}

}  // namespace
}  // namespace nunchi::testing
