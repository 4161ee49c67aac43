// Computes a tile of outputs for a few rows. The warps of a block split K: each warp holds its
// slice of the weight in registers and multiplies it by its slice of the rows; the warps' sums are
// added in order through shared memory. The weight is mma's A, the rows are its B. The mapping
// from mma's k to elements is free as long as both factors use the same one: of each 32 elements,
// lane c (of four) takes the 8 neighbours from 8c on, four for each of two mma steps.
#pragma once

#include "nunchi/kernels/cuda/common/device.h"
#include "nunchi/kernels/cuda/common/mma.h"
#include "nunchi/kernels/product.h"

namespace nunchi::kernels {

constexpr int kMaxWarps = 16, kMaxThreads = kMaxWarps * kWarp;

template <class Out>
struct FewRowsArguments {
  int rows, outputs;
  int tiles;  // number of output tiles
  std::int64_t k;
  const __nv_bfloat16* x;       // [rows, k]
  const __nv_bfloat16* weight;  // [outputs, k]
  const __nv_bfloat16* bias;    // [outputs], or null
  bool relu;
  const __nv_bfloat16* residual;  // [rows, outputs], or null
  Out* out;                       // [rows, outputs]
};

// Bypasses the L1 cache, since weights are read once. Volatile, so that the compiler does not move
// it behind wait_for_previous_kernel().
__device__ inline uint4 load_weight(const __nv_bfloat16* from) {
  uint4 x;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(from));
  return x;
}

// The elements that a lane holds of D neighbouring elements of one row.
template <int D>
struct LaneRow {
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

// c += a bᵀ: rows g (`row_g`) and g + 8 (`row_g8`) of a, row g of b.
template <int D>
__device__ void add_dots(float (&c)[4], const LaneRow<D>& row_g, const LaneRow<D>& row_g8,
                         const LaneRow<D>& b) {
#pragma unroll
  for (int i = 0; i < D / 8; i += 2) {
    const std::uint32_t a[4] = {row_g.word[i], row_g8.word[i], row_g.word[i + 1],
                                row_g8.word[i + 1]};
    mma(c, a, b.word[i], b.word[i + 1]);
  }
}

// The elements that a lane holds of one row within the warp's slice of K (Ks elements), in pieces.
// Each piece has its own accumulator, so that no chain of dependent mma instructions is longer than
// four.
template <int Ks>
struct LaneSlice {
  static constexpr int kPiece = 64, kPieces = Ks / kPiece;
  LaneRow<kPiece> piece[kPieces];

  // `from` is the lane's first element.
  __device__ void load_weight(const __nv_bfloat16* from) {
#pragma unroll
    for (int i = 0; i < Ks / 32; ++i) {
      const uint4 words = kernels::load_weight(from + 32 * i);
      std::uint32_t* to = piece[i / 2].word + i % 2 * 4;
      to[0] = words.x, to[1] = words.y, to[2] = words.z, to[3] = words.w;
    }
  }
  // `from` is the warp's first element.
  __device__ void load(const __nv_bfloat16* from) {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) piece[i].load(from + kPiece * i);
  }
};

// sum += w xᵀ over the warp's slice of K: rows g (`row_g`) and g + 8 (`row_g8`) of w, row g of x.
template <int Ks>
__device__ void multiply_accumulate(float (&sum)[4], const LaneSlice<Ks>& row_g,
                                    const LaneSlice<Ks>& row_g8, const LaneSlice<Ks>& x) {
  add_dots(sum, row_g.piece[0], row_g8.piece[0], x.piece[0]);
#pragma unroll
  for (int i = 1; i < LaneSlice<Ks>::kPieces; ++i) {
    float piece_sum[4] = {};
    add_dots(piece_sum, row_g.piece[i], row_g8.piece[i], x.piece[i]);
#pragma unroll
    for (int e = 0; e < 4; ++e) sum[e] += piece_sum[e];
  }
}

// Row stride of an output tile in shared memory. The lanes of mma's C write to rows two apart; four
// padding columns put these into different banks.
template <int Mt>
constexpr int kTileStride = 16 * Mt + 4;

// A lane's weights of 16 * Mt outputs within the warp's slice of K, and the bias of the four
// outputs that the thread writes.
template <int Ks, int Mt>
struct WeightTile {
  LaneSlice<Ks> row_g[Mt], row_g8[Mt];  // outputs g and g + 8 of each 16
  uint2 bias;

  template <class Out>
  __device__ void load(const FewRowsArguments<Out>& p, int tile) {
    const int g = threadIdx.x % kWarp / 4, first = tile * 16 * Mt;
    const __nv_bfloat16* from = p.weight + threadIdx.x / kWarp * Ks + threadIdx.x % 4 * 8;
#pragma unroll
    for (int i = 0; i < Mt; ++i) {
      // Outputs past the end repeat the last one and are not written.
      row_g[i].load_weight(from + min(first + 16 * i + g, p.outputs - 1) * p.k);
      row_g8[i].load_weight(from + min(first + 16 * i + g + 8, p.outputs - 1) * p.k);
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

// Stores this warp's sums of a tile as [8 * Nt rows, kTileStride].
template <int Mt, int Nt>
__device__ void store_sums(float* to, const float (&sums)[Mt][Nt][4]) {
  const int g = threadIdx.x % kWarp / 4, c = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < Mt; ++i) {
#pragma unroll
    for (int j = 0; j < Nt; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        to[(8 * j + 2 * c + e % 2) * kTileStride<Mt> + 16 * i + e / 2 * 8 + g] = sums[i][j][e];
      }
    }
  }
}

// A tile of the result, whose sums are split into `parts` partial sums.
struct OutputTile {
  int tile, first_row, rows, parts;
};

// The four elements of `residual` for a row, or zeros.
template <class Out>
__device__ uint2 load_residual(const FewRowsArguments<Out>& p, int row, int output) {
  if (p.residual == nullptr || row >= p.rows || output >= p.outputs) return make_uint2(0, 0);
  return *reinterpret_cast<const uint2*>(p.residual + std::int64_t{row} * p.outputs + output);
}
// Loads `residual` for the thread's first outputs, while the product is computed.
template <int Outputs, class Out>
__device__ uint2 prefetch_residual(const FewRowsArguments<Out>& p, int tile, int first_row) {
  constexpr int kGroups = Outputs / 4;
  return load_residual(p, first_row + static_cast<int>(threadIdx.x) / kGroups,
                       tile * Outputs + static_cast<int>(threadIdx.x) % kGroups * 4);
}

// Adds the partial sums [parts, rows, Columns], four outputs per thread, and applies the epilogue.
// `bias` belongs to the thread's outputs, `residual` is from prefetch_residual().
template <int Outputs, int Columns, class Out>
__device__ void write_tile(const FewRowsArguments<Out>& p, const float* partial,
                           const OutputTile& t, const uint2& bias, uint2 residual) {
  constexpr int kGroups = Outputs / 4;
  const int group = threadIdx.x % kGroups, output = t.tile * Outputs + group * 4;
  if (output >= p.outputs) return;
  for (int row = threadIdx.x / kGroups; row < min(t.rows, p.rows - t.first_row);
       row += blockDim.x / kGroups) {
    const float* from = partial + row * Columns + group * 4;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (int part = 0; part < t.parts; ++part) {
      const float4 term = *reinterpret_cast<const float4*>(from + part * t.rows * Columns);
      sum.x += term.x, sum.y += term.y, sum.z += term.z, sum.w += term.w;
    }
    sum.x += low_half(bias.x), sum.y += high_half(bias.x);
    sum.z += low_half(bias.y), sum.w += high_half(bias.y);
    if (p.relu) {
      // Not fmaxf: NaN must stay NaN.
      sum.x = sum.x < 0 ? 0 : sum.x, sum.y = sum.y < 0 ? 0 : sum.y;
      sum.z = sum.z < 0 ? 0 : sum.z, sum.w = sum.w < 0 ? 0 : sum.w;
    }
    if (p.residual != nullptr) {
      sum.x += low_half(residual.x), sum.y += high_half(residual.x);
      sum.z += low_half(residual.y), sum.w += high_half(residual.y);
      residual =
          load_residual(p, t.first_row + row + static_cast<int>(blockDim.x) / kGroups, output);
    }
    store4(p.out + std::int64_t{t.first_row + row} * p.outputs + output, sum);
  }
}

inline bool aligned(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
}

// Whether the product is rows times a weight in the layout that these kernels read.
template <class C>
bool suits_few_rows(const Product<BFloat16, C>& p) {
  return !p.transpose_a && p.transpose_b && !p.accumulate && p.mask == nullptr && p.n % 4 == 0 &&
         aligned(p.a) && aligned(p.b) && aligned(p.bias) && aligned(p.residual) && aligned(p.c);
}

template <class C>
FewRowsArguments<Native<C>> few_rows_arguments(const Product<BFloat16, C>& p) {
  return {.rows = static_cast<int>(p.m),
          .outputs = static_cast<int>(p.n),
          .tiles = 0,
          .k = p.k,
          .x = native(p.a),
          .weight = native(p.b),
          .bias = native(p.bias),
          .relu = p.relu,
          .residual = native(p.residual),
          .out = native(p.c)};
}

}  // namespace nunchi::kernels
