// An .npz file, which numpy.load opens: a ZIP archive with one .npy file for each array. Arrays are
// float32 or int32; members are compressed by zlib.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nunchi {

class NpzWriter {
 public:
  // Names are unique and contain neither '/' nor "..". The shape has as many elements as values.
  void add(std::string_view name, std::span<const std::int64_t> shape,
           std::span<const float> values);
  void add(std::string_view name, std::span<const std::int64_t> shape,
           std::span<const std::int32_t> values);
  // UTF-8 text as an array of strings of a fixed length (numpy's <U).
  void add(std::string_view name, std::span<const std::string> texts);

  // The archive; nothing can be added afterwards.
  std::string finish();

 private:
  void add_member(std::string_view name, const std::string& npy);

  std::string archive_, directory_;
  std::int64_t members_ = 0;
};

}  // namespace nunchi
