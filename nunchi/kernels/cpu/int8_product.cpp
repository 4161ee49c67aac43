// Compiled without contraction of products and sums (cmake/Kernels.cmake), so that every
// instruction set rounds in the same way.
#include "nunchi/kernels/int8_product.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "nunchi/kernels/cpu/parallel.h"
#include "nunchi/kernels/cpu/simd.h"

namespace nunchi::kernels {
namespace {

constexpr std::int64_t kPanelRows = kInt8PanelRows, kGroup = kInt8Group;
constexpr std::int64_t kGroupBytes = kPanelRows * kGroup;
constexpr float kLargest = 127.0f;

// The nearest whole number, ties to even, of |x| < 2²²: the addition leaves it in the low bits.
inline std::int32_t rounded(float x) {
  constexpr float kShift = 12582912.0f;  // 1.5 · 2²³
  return std::bit_cast<std::int32_t>(x + kShift) - std::bit_cast<std::int32_t>(kShift);
}

// max |x|; not finite if a number of the row is not.
float largest_magnitude(const float* x, std::int64_t count) {
  // As bits: magnitudes are ordered like whole numbers, and NaN is the largest.
  std::int32_t largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::bit_cast<std::int32_t>(x[i]) & 0x7FFFFFFF);
  }
  return std::bit_cast<float>(largest);
}

// The scale of a row with this largest magnitude and its inverse.
struct Scale {
  float scale, inverse;
};
Scale scale_of(float largest) {
  constexpr float kSmallest = 1e-30f;  // below it the inverse could overflow
  if (!(largest <= std::numeric_limits<float>::max())) {
    return {std::numeric_limits<float>::quiet_NaN(), 0.0f};
  }
  if (largest < kSmallest) return {0.0f, 0.0f};
  return {largest / kLargest, kLargest / largest};
}

// The rows of x as bytes.
struct QuantizedRows {
  std::int64_t stride = 0;              // bytes from one row to the next
  std::int8_t* values = nullptr;        // [M, stride], zeros after column K
  float* scales = nullptr;              // [M]
  std::int32_t* corrections = nullptr;  // [M] kInt8Zero · the sum of the row's values
};

void quantize_row(const float* x, std::int64_t k, std::int64_t row, const QuantizedRows& out) {
  std::int8_t* const values = out.values + row * out.stride;
  const Scale scale = scale_of(largest_magnitude(x, k));
  std::int32_t sum = 0;
  if (scale.inverse == 0.0f) {
    std::memset(values, 0, static_cast<std::size_t>(out.stride));
  } else {
    for (std::int64_t i = 0; i < k; ++i) {
      const std::int32_t value = rounded(x[i] * scale.inverse);
      values[i] = static_cast<std::int8_t>(value);
      sum += value;
    }
    for (std::int64_t i = k; i < out.stride; ++i) values[i] = 0;
  }
  out.scales[row] = scale.scale;
  out.corrections[row] = kInt8Zero * sum;
}

// A tile of sums: Rows rows of x times Panels panels of W. The loops over rows and panels must be
// unrolled, or the sums are written to memory in every step.
//
// a: the first row's bytes; w: the first panel's bytes, the next panel `panel_bytes` further.
struct TileInputs {
  const std::int8_t* a;
  std::int64_t a_stride;
  const std::uint8_t* w;
  std::int64_t panel_bytes;
  std::int64_t groups;
};

template <int Rows, int Panels>
using TileSums = std::array<std::array<std::int32_t, Panels * kPanelRows>, Rows>;

inline std::int32_t load_group(const std::int8_t* a) {
  std::int32_t group;
  __builtin_memcpy(&group, a, sizeof group);
  return group;
}

#if defined(__AVX512F__)

// With the dot products of bytes of AVX-512 VNNI.
struct VnniTile {
  static constexpr int kRows = 6, kPanels = 4;

  template <int Rows, int Panels>
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni"))) static void sums(
      const TileInputs& in, TileSums<Rows, Panels>& out) {
    __m512i sum[Rows][Panels];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
      for (int p = 0; p < Panels; ++p) sum[r][p] = _mm512_setzero_si512();
    }
    for (std::int64_t g = 0; g < in.groups; ++g) {
      __m512i w[Panels];
#pragma GCC unroll 8
      for (int p = 0; p < Panels; ++p) {
        w[p] = _mm512_loadu_si512(in.w + p * in.panel_bytes + g * kGroupBytes);
      }
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        const __m512i a = _mm512_set1_epi32(load_group(in.a + r * in.a_stride + g * kGroup));
#pragma GCC unroll 8
        for (int p = 0; p < Panels; ++p) sum[r][p] = _mm512_dpbusd_epi32(sum[r][p], w[p], a);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
      for (int p = 0; p < Panels; ++p) {
        _mm512_storeu_si512(out[std::size_t(r)].data() + p * kPanelRows, sum[r][p]);
      }
    }
  }
};

// Without them: bytes are widened to 16 bits, whose pairwise products are added in 32 bits.
struct WideTile {
  static constexpr int kRows = 6, kPanels = 2;

  template <int Rows, int Panels>
  static void sums(const TileInputs& in, TileSums<Rows, Panels>& out) {
    __m512i sum[Rows][Panels][2];  // two sums for each of 8 rows of W
#pragma GCC unroll 8
    for (auto& row : sum) {
#pragma GCC unroll 8
      for (auto& panel : row) panel[0] = panel[1] = _mm512_setzero_si512();
    }
    for (std::int64_t g = 0; g < in.groups; ++g) {
      __m512i w[Panels][2];
#pragma GCC unroll 8
      for (int p = 0; p < Panels; ++p) {
        const auto* bytes =
            reinterpret_cast<const __m256i*>(in.w + p * in.panel_bytes + g * kGroupBytes);
        w[p][0] = _mm512_cvtepu8_epi16(_mm256_loadu_si256(bytes));
        w[p][1] = _mm512_cvtepu8_epi16(_mm256_loadu_si256(bytes + 1));
      }
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        const __m128i bytes = _mm_cvtsi32_si128(load_group(in.a + r * in.a_stride + g * kGroup));
        const __m512i a = _mm512_broadcastq_epi64(_mm_cvtepi8_epi16(bytes));
#pragma GCC unroll 8
        for (int p = 0; p < Panels; ++p) {
#pragma GCC unroll 8
          for (int half = 0; half < 2; ++half) {
            sum[r][p][half] = _mm512_add_epi32(sum[r][p][half], _mm512_madd_epi16(w[p][half], a));
          }
        }
      }
    }
    const __m512i even =
        _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i odd = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
      for (int p = 0; p < Panels; ++p) {
        const __m512i low = sum[r][p][0], high = sum[r][p][1];
        _mm512_storeu_si512(out[std::size_t(r)].data() + p * kPanelRows,
                            _mm512_add_epi32(_mm512_permutex2var_epi32(low, even, high),
                                             _mm512_permutex2var_epi32(low, odd, high)));
      }
    }
  }
};

#elif defined(__AVX2__)

struct WideTile {
  static constexpr int kRows = 2, kPanels = 1;

  template <int Rows, int Panels>
  static void sums(const TileInputs& in, TileSums<Rows, Panels>& out) {
    static_assert(Panels == 1);
    __m256i sum[Rows][4];  // two sums for each of 4 rows of W
#pragma GCC unroll 8
    for (auto& row : sum) {
#pragma GCC unroll 8
      for (auto& quarter : row) quarter = _mm256_setzero_si256();
    }
    for (std::int64_t g = 0; g < in.groups; ++g) {
      const auto* bytes = reinterpret_cast<const __m128i*>(in.w + g * kGroupBytes);
      __m256i a[Rows];
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        const __m128i group = _mm_cvtsi32_si128(load_group(in.a + r * in.a_stride + g * kGroup));
        a[r] = _mm256_broadcastq_epi64(_mm_cvtepi8_epi16(group));
      }
#pragma GCC unroll 8
      for (int quarter = 0; quarter < 4; ++quarter) {
        const __m256i w = _mm256_cvtepu8_epi16(_mm_loadu_si128(bytes + quarter));
#pragma GCC unroll 8
        for (int r = 0; r < Rows; ++r) {
          sum[r][quarter] = _mm256_add_epi32(sum[r][quarter], _mm256_madd_epi16(w, a[r]));
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
      for (int half = 0; half < 2; ++half) {
        // Lanes 0 1 4 5 2 3 6 7 of the eight rows of W.
        const __m256i mixed = _mm256_hadd_epi32(sum[r][2 * half], sum[r][2 * half + 1]);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out[std::size_t(r)].data() + 8 * half),
                            _mm256_permute4x64_epi64(mixed, 0xD8));
      }
    }
  }
};

#else

struct WideTile {
  static constexpr int kRows = 1, kPanels = 1;

  template <int Rows, int Panels>
  static void sums(const TileInputs& in, TileSums<Rows, Panels>& out) {
    static_assert(Rows == 1 && Panels == 1);
    std::array<std::int32_t, kPanelRows> sum{};
    for (std::int64_t g = 0; g < in.groups; ++g) {
      const std::uint8_t* w = in.w + g * kGroupBytes;
      const std::int8_t* a = in.a + g * kGroup;
      for (std::int64_t n = 0; n < kPanelRows; ++n) {
        std::int32_t products = 0;
        for (std::int64_t i = 0; i < kGroup; ++i) products += w[n * kGroup + i] * a[i];
        sum[std::size_t(n)] += products;
      }
    }
    std::copy(sum.begin(), sum.end(), out[0].begin());
  }
};

#endif

// Writes the results of a row of sums: columns [begin, begin + count) of row `row` of c.
void write_results(const Product<float>& p, const QuantizedRows& x, std::int64_t row,
                   std::int64_t begin, std::int64_t count, const std::int32_t* sums) {
  const float scale = x.scales[row];
  const std::int32_t correction = x.corrections[row];
  float* const c = p.c + row * p.n + begin;
  const float* const scales = p.formed_b.scales + begin;
  const float* const bias = p.bias != nullptr ? p.bias + begin : nullptr;
  const float* const residual = p.residual != nullptr ? p.residual + row * p.n + begin : nullptr;
  for (std::int64_t i = 0; i < count; ++i) {
    float value = static_cast<float>(sums[i] - correction) * scale * scales[i];
    if (bias != nullptr) value += bias[i];
    if (residual != nullptr) value += residual[i];
    if (p.relu) value = value > 0 || value != value ? value : 0.0f;
    c[i] = p.accumulate ? c[i] + value : value;
  }
}

// The results of rows [row, row + Rows) and panels [panel, panel + Panels).
template <class Tile, int Rows, int Panels>
void multiply_tile(const Product<float>& p, const QuantizedRows& x, std::int64_t row,
                   std::int64_t panel) {
  const std::int64_t groups = int8_groups(p.k), panel_bytes = groups * kGroupBytes;
  TileSums<Rows, Panels> sums;
  Tile::template sums<Rows, Panels>(
      {.a = x.values + row * x.stride,
       .a_stride = x.stride,
       .w = static_cast<const std::uint8_t*>(p.formed_b.data) + panel * panel_bytes,
       .panel_bytes = panel_bytes,
       .groups = groups},
      sums);
  const std::int64_t begin = panel * kPanelRows;
  for (int r = 0; r < Rows; ++r) {
    write_results(p, x, row + r, begin, std::min<std::int64_t>(Panels * kPanelRows, p.n - begin),
                  sums[std::size_t(r)].data());
  }
}

template <class Tile, int Rows, int Panels>
void multiply_rows(const Product<float>& p, const QuantizedRows& x, std::int64_t row,
                   std::int64_t end, std::int64_t panel) {
  for (; row + Rows <= end; row += Rows) multiply_tile<Tile, Rows, Panels>(p, x, row, panel);
  if constexpr (Rows > 1) {
    if (row < end) multiply_rows<Tile, Rows / 2, Panels>(p, x, row, end, panel);
  }
}

// Rows [first_row, last_row) and panels [panel, end). The panels' bytes stay in the cache while all
// rows are multiplied with them.
template <class Tile, int Panels>
void multiply_panels(const Product<float>& p, const QuantizedRows& x, std::int64_t first_row,
                     std::int64_t last_row, std::int64_t panel, std::int64_t end) {
  for (; panel + Panels <= end; panel += Panels) {
    multiply_rows<Tile, Tile::kRows, Panels>(p, x, first_row, last_row, panel);
  }
  if constexpr (Panels > 1) {
    if (panel < end) {
      multiply_panels<Tile, Panels / 2>(p, x, first_row, last_row, panel, end);
    }
  }
}

template <class Tile>
void multiply_all(CpuContext& ctx, const Product<float>& p, const QuantizedRows& x) {
  // Tasks are blocks of panels, and of rows if there are too few panels for all threads.
  constexpr std::int64_t kPanels = Tile::kPanels, kMinRows = 48;
  const std::int64_t panels = int8_panels(p.n), blocks = (panels + kPanels - 1) / kPanels;
  const std::int64_t row_blocks =
      std::clamp<std::int64_t>(2 * ctx.threads() / blocks, 1, (p.m + kMinRows - 1) / kMinRows);
  // About how long a task takes: as long as the multiplications, or as reading the panels.
  constexpr double kMultiplicationsPerNanosecond = 150, kBytesPerNanosecond = 25;
  const auto bytes = static_cast<double>(kPanels * kPanelRows * p.k);
  const double nanoseconds =
      std::max(bytes * static_cast<double>(p.m) / static_cast<double>(row_blocks) /
                   kMultiplicationsPerNanosecond,
               bytes / kBytesPerNanosecond);
  const auto grain = static_cast<std::int64_t>(std::ceil(kMinParallelNanoseconds / nanoseconds));
  parallel_ranges(ctx, blocks * row_blocks, grain, [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t rows = begin / blocks, block = begin % blocks;
      const std::int64_t count = std::min(end - begin, blocks - block);
      multiply_panels<Tile, kPanels>(p, x, p.m * rows / row_blocks, p.m * (rows + 1) / row_blocks,
                                     block * kPanels, std::min(panels, (block + count) * kPanels));
      begin += count;
    }
  });
}

#if defined(__AVX512F__)
bool has_vnni() {
  static const bool has = __builtin_cpu_supports("avx512vnni");
  return has;
}
#endif

}  // namespace

template <class Target>
void compute(ContextOf<Target>& ctx, const QuantizeMatrix& p) {
  const std::int64_t groups = int8_groups(p.k);
  const std::int64_t end =
      p.first + p.count == p.n ? int8_panels(p.n) * kPanelRows : p.first + p.count;
  parallel_ranges(ctx, end - p.first, 16, [&](std::int64_t begin, std::int64_t stop) {
    for (std::int64_t n = p.first + begin; n < p.first + stop; ++n) {
      const float* w = n < p.n ? p.w + (n - p.first) * p.k : nullptr;
      const Scale scale = w != nullptr ? scale_of(largest_magnitude(w, p.k)) : Scale{0, 0};
      if (w != nullptr) p.scales[n] = scale.scale;
      std::uint8_t* out = p.values + int8_index(n, 0, p.k);
      for (std::int64_t k = 0; k < groups * kGroup; ++k) {
        const std::int32_t value =
            k < p.k && scale.inverse != 0.0f ? rounded(w[k] * scale.inverse) : 0;
        out[k / kGroup * kGroupBytes + k % kGroup] = static_cast<std::uint8_t>(value + kInt8Zero);
      }
    }
  });
}
template void compute<Cpu<kIsa>>(CpuContext&, const QuantizeMatrix&);

template <class Target>
void compute(ContextOf<Target>& ctx, const Int8Product& product) {
  const Product<float>& p = product.p;
  check_product(p);
  if (p.transpose_a || !p.transpose_b) {
    refuse_product(p.label, "a product with an int8 weight must be x · Wᵀ.");
  }
  if (p.k < 1 || p.k > kInt8MaxColumns) {
    refuse_product(p.label, "the rows of an int8 weight must have 1 to 65,536 columns.");
  }
  if (p.m == 0 || p.n == 0) return;
  const auto stride = int8_groups(p.k) * kGroup;
  const auto rows = static_cast<std::size_t>(p.m);
  const ScratchMemory memory(ctx.arena(), rows * (static_cast<std::size_t>(stride) + sizeof(float) +
                                                  sizeof(std::int32_t)));
  auto* const numbers = memory.as<std::int32_t>();
  const QuantizedRows x{.stride = stride,
                        .values = reinterpret_cast<std::int8_t*>(numbers + 2 * p.m),
                        .scales = reinterpret_cast<float*>(numbers),
                        .corrections = numbers + p.m};
  constexpr std::int64_t kMinElements = 1 << 15;  // of a thread
  parallel_ranges(ctx, p.m, std::max<std::int64_t>(1, kMinElements / p.k),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t row = begin; row < end; ++row) {
                      quantize_row(p.a + row * p.k, p.k, row, x);
                    }
                  });
#if defined(__AVX512F__)
  if (product.vnni && has_vnni()) return multiply_all<VnniTile>(ctx, p, x);
#endif
  multiply_all<WideTile>(ctx, p, x);
}
template void compute<Cpu<kIsa>>(CpuContext&, const Int8Product&);

}  // namespace nunchi::kernels
