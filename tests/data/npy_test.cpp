#include "nunchi/data/npy.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "tests/data/npy_files.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/paths.h"

namespace nunchi::testing {
namespace {

const std::vector<float> kValues = {1, 2, 3, 4, 5, 6};

Features parse(const std::string& file) {
  return parse_npy(RandomAccessFile(bytes(file), "x.npy"));
}
std::string refusal(const std::string& file) {
  return error_of([&] { parse(file); });
}

TEST(Npy, ReadsAMatrixOfEachFormatVersion) {
  for (const int version : {1, 2, 3}) {
    const Features features = parse(npy_bytes(npy_header(2, 3), kValues, version));
    EXPECT_EQ(features.width, 3);
    EXPECT_EQ(features.rows(), 2);
    EXPECT_EQ(features.values, kValues);
  }
  // Other programs may write no spaces, or the keys in another order.
  EXPECT_EQ(parse(npy_bytes("{'shape':(3,2),'fortran_order':False,'descr':'<f4'}", kValues)).width,
            2);
}

TEST(Npy, ReadsAFile) {
  const TemporaryFolder folder;
  write_npy(folder / "a.npy", {.width = 2, .values = kValues});
  EXPECT_EQ(read_npy(folder / "a.npy").values, kValues);
}

TEST(Npy, RefusesInvalidFiles) {
  const std::string valid_file = npy_bytes(npy_header(2, 3), kValues);
  EXPECT_EQ(refusal("no file"),
            "x.npy is not a file of features: it is not in NumPy's .npy format.");
  EXPECT_TRUE(says(refusal(npy_bytes(npy_header(2, 3), kValues, 9)), "version is unknown"));
  EXPECT_TRUE(says(refusal(npy_bytes("{'descr': '<f8', 'shape': (2, 3)}", kValues)), "not f32"));
  EXPECT_TRUE(
      says(refusal(npy_bytes("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", kValues)),
           "column-major"));
  for (const char* shape : {"(6,)", "(1, 2, 3)", "()", "(2; 3)"}) {
    const std::string header =
        std::string("{'descr': '<f4', 'fortran_order': False, 'shape': ") + shape + "}";
    EXPECT_TRUE(says(refusal(npy_bytes(header, kValues)), "not a matrix")) << shape;
  }
  EXPECT_TRUE(says(refusal(npy_bytes(npy_header(0, 3), {})), "it is empty"));
  for (const auto& [rows, columns] :
       {std::pair<std::int64_t, std::int64_t>{2, 2}, {6, 3}, {1LL << 40, 1LL << 40}}) {
    EXPECT_TRUE(says(refusal(npy_bytes(npy_header(rows, columns), kValues)), "does not match"));
  }
  EXPECT_TRUE(says(refusal(valid_file.substr(0, valid_file.size() - 1)), "does not match"));
  EXPECT_TRUE(says(refusal(valid_file.substr(0, 20)), "past its end"));
  std::vector<float> bad = kValues;
  bad[4] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(says(refusal(npy_bytes(npy_header(2, 3), bad)), "not finite"));
}

TEST(Npy, FuzzSeedsAreAcceptedOrRefusedAsNamed) {
  namespace fs = std::filesystem;
  int seeds = 0;
  for (const fs::directory_entry& seed :
       fs::directory_iterator(fs::path(NUNCHI_SOURCE_DIR) / "tests/fuzz/corpus/npy")) {
    const bool valid = seed.path().filename().string().starts_with("valid-");
    const std::string message = error_of([&] { read_npy(seed.path()); });
    EXPECT_EQ(message == "no error", valid) << seed.path() << ": " << message;
    ++seeds;
  }
  EXPECT_GE(seeds, 7);
}

}  // namespace
}  // namespace nunchi::testing
