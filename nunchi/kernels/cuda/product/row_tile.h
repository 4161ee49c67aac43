// A tile of outputs of a few rows, for blocks whose warps share K: each warp holds its part of the
// weight in registers and multiplies it by its part of the rows; the warps' sums are added through
// shared memory, in the warps' order. The weight is mma's A, the rows are its B. Which element each
// k stands for is ours to choose, as long as it is the same for both: of each 32 elements lane c
// (of four) takes the 8 from 8c on, which are neighbours in memory, and two steps of k use up four
// each.
#pragma once

#include "nunchi/kernels/cuda/common/device.h"
#include "nunchi/kernels/cuda/common/mma.h"
#include "nunchi/kernels/product.h"

namespace nunchi::kernels {

constexpr int kMostWarps = 16, kMostThreads = kMostWarps * kWarp;

template <class N>
struct RowJob {
  int rows, outputs, tiles;  // tiles of outputs
  std::int64_t k;
  const __nv_bfloat16* x;       // [rows, k]
  const __nv_bfloat16* weight;  // [outputs, k]
  const __nv_bfloat16* bias;    // [outputs], or null
  bool relu;
  const __nv_bfloat16* added;  // [rows, outputs], or null
  N* out;                      // [rows, outputs]
};

// Read once: the first-level cache has nothing to keep. Volatile: it stays before begin().
__device__ inline uint4 load_weight(const __nv_bfloat16* from) {
  uint4 x;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(from));
  return x;
}

// A lane's part of D elements of one row.
template <int D>
struct RowShare {
  std::uint32_t word[D / 8];

  __device__ void load(const __nv_bfloat16* row) {
#pragma unroll
    for (int i = 0; i < D / 32; ++i) {
      const uint4 words = *reinterpret_cast<const uint4*>(row + 32 * i + threadIdx.x % 4 * 8);
      word[4 * i] = words.x, word[4 * i + 1] = words.y;
      word[4 * i + 2] = words.z, word[4 * i + 3] = words.w;
    }
  }
};

// c += a bᵀ: rows g (`low`) and g + 8 (`high`) of a, row g of b.
template <int D>
__device__ void add_dots(float (&c)[4], const RowShare<D>& low, const RowShare<D>& high,
                         const RowShare<D>& b) {
#pragma unroll
  for (int i = 0; i < D / 8; i += 2) {
    const std::uint32_t a[4] = {low.word[i], high.word[i], low.word[i + 1], high.word[i + 1]};
    mma(c, a, b.word[i], b.word[i + 1]);
  }
}

// A lane's part of one row over the Ks elements that are the warp's, in pieces. Each is summed by
// itself: a chain of four products, each of which waits for the one before, and not of four times
// as many.
template <int Ks>
struct WarpShare {
  static constexpr int kPiece = 64, kPieces = Ks / kPiece;
  RowShare<kPiece> piece[kPieces];

  // `from` is the first element that is the lane's.
  __device__ void load_weight(const __nv_bfloat16* from) {
#pragma unroll
    for (int i = 0; i < Ks / 32; ++i) {
      const uint4 words = kernels::load_weight(from + 32 * i);
      std::uint32_t* to = piece[i / 2].word + i % 2 * 4;
      to[0] = words.x, to[1] = words.y, to[2] = words.z, to[3] = words.w;
    }
  }
  // `from` is the first element that is the warp's.
  __device__ void load(const __nv_bfloat16* from) {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) piece[i].load(from + kPiece * i);
  }
};

template <int Ks>
__device__ void add_pieces(float (&sum)[4], const WarpShare<Ks>& low, const WarpShare<Ks>& high,
                           const WarpShare<Ks>& x) {
  add_dots(sum, low.piece[0], high.piece[0], x.piece[0]);
#pragma unroll
  for (int i = 1; i < WarpShare<Ks>::kPieces; ++i) {
    float part[4] = {};
    add_dots(part, low.piece[i], high.piece[i], x.piece[i]);
#pragma unroll
    for (int e = 0; e < 4; ++e) sum[e] += part[e];
  }
}

// Columns of a tile of outputs in shared memory: a lane of mma's C writes rows two apart, and the
// four padding columns put them into different banks.
template <int Mt>
constexpr int kColumns = 16 * Mt + 4;

// A lane's part of 16 * Mt outputs' weights over the Ks elements that are the warp's, and of their
// bias those four that the thread will add.
template <int Ks, int Mt>
struct WeightTile {
  WarpShare<Ks> low[Mt], high[Mt];  // outputs g and g + 8 of each 16
  uint2 bias;

  template <class N>
  __device__ void load(const RowJob<N>& p, int tile) {
    const int g = threadIdx.x % kWarp / 4, first = tile * 16 * Mt;
    const __nv_bfloat16* from = p.weight + threadIdx.x / kWarp * Ks + threadIdx.x % 4 * 8;
#pragma unroll
    for (int i = 0; i < Mt; ++i) {
      // Past the last output its weights are read again; what comes of them is not written.
      low[i].load_weight(from + min(first + 16 * i + g, p.outputs - 1) * p.k);
      high[i].load_weight(from + min(first + 16 * i + g + 8, p.outputs - 1) * p.k);
    }
    const int output = first + threadIdx.x % (4 * Mt) * 4;
    bias = make_uint2(0, 0);
    if (p.bias != nullptr && output < p.outputs) {
      bias = *reinterpret_cast<const uint2*>(p.bias + output);
    }
  }
};

__device__ inline void store4(float* to, const float4& x) { *reinterpret_cast<float4*>(to) = x; }
__device__ inline void store4(__nv_bfloat16* to, const float4& x) {
  *reinterpret_cast<uint2*>(to) = make_uint2(packed(x.x, x.y), packed(x.z, x.w));
}

// This warp's sums of a tile: [8 * Nt rows, kColumns].
template <int Mt, int Nt>
__device__ void keep_sums(float* to, const float (&sums)[Mt][Nt][4]) {
  const int g = threadIdx.x % kWarp / 4, c = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < Mt; ++i) {
#pragma unroll
    for (int j = 0; j < Nt; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        to[(8 * j + 2 * c + e % 2) * kColumns<Mt> + 16 * i + e / 2 * 8 + g] = sums[i][j][e];
      }
    }
  }
}

// A tile of a product's result, whose sums stand in `parts` parts one after another.
struct OutTile {
  int tile, first_row, rows, parts;
};

// What is added to four outputs of a row, or zeros.
template <class N>
__device__ uint2 load_added(const RowJob<N>& p, int row, int output) {
  if (p.added == nullptr || row >= p.rows || output >= p.outputs) return make_uint2(0, 0);
  return *reinterpret_cast<const uint2*>(p.added + std::int64_t{row} * p.outputs + output);
}
// To what this thread will write first: on its way while the product is computed.
template <int Outputs, class N>
__device__ uint2 first_added(const RowJob<N>& p, int tile, int first_row) {
  constexpr int kGroups = Outputs / 4;
  return load_added(p, first_row + static_cast<int>(threadIdx.x) / kGroups,
                    tile * Outputs + static_cast<int>(threadIdx.x) % kGroups * 4);
}

// All parts' sums [parts, rows, Columns], four outputs a thread, and what follows them. `bias` is
// that of the thread's outputs, `added` what first_added() found.
template <int Outputs, int Columns, class N>
__device__ void write_tile(const RowJob<N>& p, const float* partial, const OutTile& t,
                           const uint2& bias, uint2 added) {
  constexpr int kGroups = Outputs / 4;
  const int group = threadIdx.x % kGroups, output = t.tile * Outputs + group * 4;
  if (output >= p.outputs) return;
  for (int row = threadIdx.x / kGroups; row < min(t.rows, p.rows - t.first_row);
       row += blockDim.x / kGroups) {
    const float* from = partial + row * Columns + group * 4;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (int part = 0; part < t.parts; ++part) {
      const float4 more = *reinterpret_cast<const float4*>(from + part * t.rows * Columns);
      sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
    }
    sum.x += low_half(bias.x), sum.y += high_half(bias.x);
    sum.z += low_half(bias.y), sum.w += high_half(bias.y);
    if (p.relu) {
      // Not fmaxf: a NaN stays.
      sum.x = sum.x < 0 ? 0 : sum.x, sum.y = sum.y < 0 ? 0 : sum.y;
      sum.z = sum.z < 0 ? 0 : sum.z, sum.w = sum.w < 0 ? 0 : sum.w;
    }
    if (p.added != nullptr) {
      sum.x += low_half(added.x), sum.y += high_half(added.x);
      sum.z += low_half(added.y), sum.w += high_half(added.y);
      added = load_added(p, t.first_row + row + static_cast<int>(blockDim.x) / kGroups, output);
    }
    store4(p.out + std::int64_t{t.first_row + row} * p.outputs + output, sum);
  }
}

inline bool aligned(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
}

// Whether it is rows times a weight as these kernels read them.
template <class C>
bool is_row_product(const Product<BFloat16, C>& p) {
  return !p.transpose_a && p.transpose_b && !p.accumulate && p.mask == nullptr && p.n % 4 == 0 &&
         aligned(p.a) && aligned(p.b) && aligned(p.bias) && aligned(p.added) && aligned(p.c);
}

template <class C>
RowJob<Native<C>> row_job(const Product<BFloat16, C>& p) {
  return {.rows = static_cast<int>(p.m),
          .outputs = static_cast<int>(p.n),
          .tiles = 0,
          .k = p.k,
          .x = native(p.a),
          .weight = native(p.b),
          .bias = native(p.bias),
          .relu = p.relu,
          .added = native(p.added),
          .out = native(p.c)};
}

}  // namespace nunchi::kernels
