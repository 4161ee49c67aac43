#include "nunchi/data/feature_store.h"

#include <gtest/gtest.h>

#include "tests/errors.h"
#include "tests/files.h"
#include "tests/paths.h"

namespace nunchi::testing {
namespace {

constexpr Digest kKey = {.low = 7, .high = 8};

// Examples of 1, 3 and 2 rows, 3 columns each.
void write_store(const std::filesystem::path& path) {
  FeatureWriter writer(path, kKey, 3);
  float next = 0;
  for (const std::size_t rows : {1, 3, 2}) {
    std::vector<float> values(rows * 3);
    for (float& value : values) value = next++;
    writer.add(values);
  }
  writer.commit();
}

TEST(FeatureStore, ReturnsWhatWasWritten) {
  const TemporaryFolder folder;
  write_store(folder / "f.bin");
  const FeatureStore store = FeatureStore::open(folder / "f.bin");
  EXPECT_EQ(store.size(), 3);
  EXPECT_EQ(store.width(), 3);
  EXPECT_EQ(store.key(), kKey);
  EXPECT_TRUE(store.values_are_intact());
  EXPECT_EQ(store.rows(1), 3);
  const auto values = store.values(1);
  ASSERT_EQ(values.size(), 9u);
  EXPECT_EQ(values.front(), 3);
  EXPECT_EQ(values.back(), 11);
}

TEST(FeatureStore, CanBeEmpty) {
  const TemporaryFolder folder;
  FeatureWriter(folder / "f.bin", kKey, 3).commit();
  EXPECT_EQ(FeatureStore::open(folder / "f.bin").size(), 0);
}

TEST(FeatureStore, DoesNotExistBeforeCommit) {
  const TemporaryFolder folder;
  { FeatureWriter(folder / "f.bin", kKey, 3).add(std::vector<float>(3)); }
  EXPECT_TRUE(folder.empty());
}

TEST(FeatureStore, DetectsEveryChangedByte) {
  const TemporaryFolder folder;
  write_store(folder / "f.bin");
  const std::string whole = content(folder / "f.bin");
  for (std::size_t position = 0; position < whole.size(); ++position) {
    std::string changed = whole;
    changed[position] = static_cast<char>(changed[position] ^ 1);
    write_text(folder / "changed.bin", changed);
    bool detected = true;
    try {
      detected = !FeatureStore::open(folder / "changed.bin").values_are_intact();
    } catch (const Error&) {
    }
    EXPECT_TRUE(detected) << "byte " << position;
  }
}

TEST(FeatureStore, DetectsTruncatedFiles) {
  const TemporaryFolder folder;
  write_store(folder / "f.bin");
  const std::string whole = content(folder / "f.bin");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_text(folder / "cut.bin", whole.substr(0, size));
    EXPECT_TRUE(says(error_of([&] { FeatureStore::open(folder / "cut.bin"); }),
                     "is not a valid file of features"))
        << size;
  }
}

TEST(FeatureStore, FuzzSeedsAreAcceptedOrRefusedAsNamed) {
  namespace fs = std::filesystem;
  int seeds = 0;
  for (const fs::directory_entry& seed :
       fs::directory_iterator(fs::path(NUNCHI_SOURCE_DIR) / "tests/fuzz/corpus/feature_store")) {
    const bool valid = seed.path().filename().string().starts_with("valid-");
    const std::string message = error_of([&] { FeatureStore::open(seed.path()); });
    EXPECT_EQ(message == "no error", valid) << seed.path() << ": " << message;
    ++seeds;
  }
  EXPECT_GE(seeds, 7);
}

}  // namespace
}  // namespace nunchi::testing
