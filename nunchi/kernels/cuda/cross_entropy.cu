#include "nunchi/kernels/cross_entropy.h"

#include "nunchi/kernels/cuda/search/row_registers.h"

namespace nunchi::kernels {
namespace {

template <class N, bool Aligned>
__device__ void clear_row(N* x, int size) {
  if constexpr (Aligned) {
    for (int i = static_cast<int>(threadIdx.x); i < size * static_cast<int>(sizeof(N)) / 16;
         i += static_cast<int>(blockDim.x)) {
      reinterpret_cast<uint4*>(x)[i] = make_uint4(0, 0, 0, 0);
    }
  } else {
    for (int i = static_cast<int>(threadIdx.x); i < size; i += static_cast<int>(blockDim.x)) {
      x[i] = from_float<N>(0);
    }
  }
}

// One block per row. Held: the whole row stays in registers over its three passes; otherwise each
// pass reads it again, chunk by chunk.
template <class N, int Threads, int Groups, bool Aligned, bool Held>
__global__ __launch_bounds__(Threads, Aligned
                                          ? 1024 / Threads
                                          : 1) void cross_entropy_kernel(const CrossEntropy<N> p) {
  using Row = RowRegisters<N, Threads, Groups, Aligned>;
  constexpr int kWarps = Threads / kWarp;
  constexpr float kLowest = -INFINITY;
  __shared__ float warp_max_logits[kWarps], sums[kWarps], score_sums[kWarps];

  const std::int64_t r = blockIdx.x;
  const int size = static_cast<int>(p.vocabulary), warp = static_cast<int>(threadIdx.x) / kWarp;
  const bool first_lane = threadIdx.x % kWarp == 0;
  N* x = p.logits + r * size;
  if (r >= real_rows(p.rows) - p.first_row) {
    if (p.write_gradient) clear_row<N, Aligned>(x, size);
    if (threadIdx.x == 0) p.loss[r] = 0;
    return;
  }
  const int target = p.targets[r];
  const float target_logit = to_float(x[target]);

  Row row;
  if constexpr (Held) row.load(x, size);
  const auto pass = [&](auto&& visit) {
    if constexpr (Held) {
      visit(x);
    } else {
      for (int begin = 0; begin < size; begin += Row::kCapacity) {
        row.load(x + begin, size - begin);
        visit(x + begin);
      }
    }
  };

  float max_logit = kLowest;
  pass([&](N*) { row.each([&](float value, int) { max_logit = fmaxf(max_logit, value); }); });
  max_logit = warp_max(max_logit);
  if (first_lane) warp_max_logits[warp] = max_logit;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < kWarps; ++w) max_logit = fmaxf(max_logit, warp_max_logits[w]);

  float sum = 0, score_sum = 0;
  pass([&](N*) {
    row.each([&](float value, int) {
      const float score = value - max_logit;
      sum += exponential<N>(score);
      score_sum += score;
    });
  });
  sum = warp_sum(sum);
  score_sum = warp_sum(score_sum);
  if (first_lane) sums[warp] = sum, score_sums[warp] = score_sum;
  __syncthreads();
  sum = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) sum += sums[w];

  if (threadIdx.x == 0) {
    double loss = log(double{sum}) -
                  (1 - p.smoothing) * (double{target_logit} - static_cast<double>(max_logit));
    if (p.smoothing > 0) {
      double scores = 0;
      for (int w = 0; w < kWarps; ++w) scores += score_sums[w];
      loss -= p.smoothing / size * scores;
    }
    p.loss[r] = static_cast<float>(loss);
  }
  if (!p.write_gradient) return;

  const float smoothing_per_token = static_cast<float>(p.smoothing / size);
  const float inverse = 1 / sum;
  // In bf16 the division is folded into the exponent: one instruction less per element.
  const float shift = max_logit * kLog2E + log2f(sum);
  const auto gradient = [&](float value) {
    if constexpr (sizeof(N) == 4) {
      return expf(value - max_logit) * inverse - smoothing_per_token;
    } else {
      return fast_exp2(fmaf(value, kLog2E, -shift)) - smoothing_per_token;
    }
  };
  pass([&](N* chunk) { row.map(chunk, gradient); });
  if (Row::has(target)) {
    x[target] = from_float<N>(gradient(target_logit) - static_cast<float>(1 - p.smoothing));
  }
}

template <class N, bool Aligned>
void launch(CudaContext& ctx, const CrossEntropy<N>& p) {
  const auto launch_sized = [&]<int Threads, int Groups, bool Held>() {
    cross_entropy_kernel<N, Threads, Groups, Aligned, Held>
        <<<static_cast<unsigned>(p.chunk_rows), Threads, 0, ctx.stream()>>>(p);
  };
  constexpr int kGroup = 16 / static_cast<int>(sizeof(N));
  const auto fits = [&](int threads, int groups) {
    return p.vocabulary <= threads * groups * kGroup;
  };
  // Small blocks if they suffice: two share a multiprocessor, and one reads while the other
  // computes.
  if (fits(512, 1)) return launch_sized.template operator()<512, 1, true>();
  if (fits(512, 2)) return launch_sized.template operator()<512, 2, true>();
  if (fits(512, 4)) return launch_sized.template operator()<512, 4, true>();
  if (fits(512, 8)) return launch_sized.template operator()<512, 8, true>();
  if (fits(512, 10)) return launch_sized.template operator()<512, 10, true>();
  if (fits(1024, 8)) return launch_sized.template operator()<1024, 8, true>();
  if (fits(1024, 10)) return launch_sized.template operator()<1024, 10, true>();
  launch_sized.template operator()<512, 8, false>();
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const CrossEntropy<T>& p) {
  if (p.chunk_rows == 0 || p.vocabulary == 0) return;
  using N = Native<T>;
  if (rows_are_aligned(native(p.logits), p.vocabulary)) {
    launch<N, true>(ctx, native(p));
  } else {
    launch<N, false>(ctx, native(p));
  }
  check_launch(p.name());
}
template void compute<Cuda>(CudaContext&, const CrossEntropy<float>&);
template void compute<Cuda>(CudaContext&, const CrossEntropy<BFloat16>&);

}  // namespace nunchi::kernels
