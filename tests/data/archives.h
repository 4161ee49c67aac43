// Compresses text for tests.
#pragma once

#include <lzma.h>
#include <zlib.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace nunchi::testing {

// One gzip member.
inline std::string gzipped(std::string_view text) {
  z_stream state{};
  if (deflateInit2(&state, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("zlib");
  }
  std::string packed(deflateBound(&state, text.size()) + 64, '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  state.avail_in = static_cast<uInt>(text.size());
  state.next_out = reinterpret_cast<Bytef*>(packed.data());
  state.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&state, Z_FINISH);
  packed.resize(state.total_out);
  deflateEnd(&state);
  if (result != Z_STREAM_END) throw std::runtime_error("zlib");
  return packed;
}

// One xz stream.
inline std::string xz_packed(std::string_view text) {
  std::string packed(lzma_stream_buffer_bound(text.size()), '\0');
  std::size_t size = 0;
  if (lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, nullptr,
                              reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
                              reinterpret_cast<std::uint8_t*>(packed.data()), &size,
                              packed.size()) != LZMA_OK) {
    throw std::runtime_error("liblzma");
  }
  packed.resize(size);
  return packed;
}

}  // namespace nunchi::testing
