// Reads the tensors of a golden file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/models/format/safetensors.h"
#include "nunchi/text/tokens.h"
#include "tests/paths.h"

namespace nunchi::testing {

inline std::filesystem::path golden_folder() {
  return std::filesystem::path(NUNCHI_SOURCE_DIR) / "tests/golden";
}

template <class T>
std::vector<T> values_of(const SafetensorsFile& file, const std::string& name) {
  const StoredTensor* tensor = file.find(name);
  if (tensor == nullptr) throw Error("the golden file has no " + name);
  return file.values<T>(*tensor);
}

// The sentences in the tensors NAME_ids and NAME_lengths.
inline std::vector<Tokens> sentences_in(const SafetensorsFile& file, const std::string& name) {
  const std::vector<std::int32_t> ids = values_of<std::int32_t>(file, name + "_ids");
  std::vector<Tokens> sentences;
  auto begin = ids.begin();
  for (const std::int32_t length : values_of<std::int32_t>(file, name + "_lengths")) {
    sentences.emplace_back(begin, begin + length);
    begin += length;
  }
  return sentences;
}

}  // namespace nunchi::testing
