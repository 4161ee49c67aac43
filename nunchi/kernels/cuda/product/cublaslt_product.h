// Products by cuBLASLt, called the library here. It expects column-major matrices, so it computes
// the transpose of our product, cᵀ [N, M] = op(b)ᵀ op(a)ᵀ, without moving data.
//
// The algorithm for a shape is the fastest of those that the library proposes, measured once. With
// a deterministic context nothing is measured: the algorithm depends only on the weight's sizes and
// does not split along K.
#pragma once

#include <bit>
#include <map>
#include <string>
#include <vector>

#include "nunchi/device/cuda/cublaslt.h"
#include "nunchi/kernels/cuda/common/device.h"
#include "nunchi/kernels/product.h"

namespace nunchi::kernels {

// Throws Error for a failed call; `failure` says what failed.
inline void check_blas(cublasStatus_t status, const char* failure) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(std::string("cuBLASLt: ") + failure + ": " + cublaslt().status_string(status) + ".");
}

template <class T>
constexpr cudaDataType_t kType = sizeof(T) == 2 ? CUDA_R_16BF : CUDA_R_32F;

// Operations that the library applies to a product before storing it.
struct Epilogue {
  cublasLtEpilogue_t kind = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;  // added to the product, or a bias gradient that is written
  cudaDataType_t bias_type = CUDA_R_32F;
  const void* mask = nullptr;        // one bit per result: whether relu passed it; written or read
  const void* gelu_input = nullptr;  // gelu's input, [M, N] in the result's type, written or read
};

// Whether the library accepts `matrix`, with n columns and the layout of c, as gelu's input.
template <class T>
bool can_be_gelu_input(const T* matrix, std::int64_t n) {
  return sizeof(T) == 2 && n % 8 == 0 && reinterpret_cast<std::uintptr_t>(matrix) % 16 == 0;
}

// Row stride of the mask in bits, as the library requires.
inline std::int64_t mask_stride(std::int64_t n) { return (n + 127) / 128 * 128; }

template <class T, class C>
Epilogue epilogue_of(const Product<T, C>& p) {
  Epilogue epilogue{.bias = p.bias, .bias_type = kType<T>, .mask = p.mask};
  if (p.relu && p.mask != nullptr) {
    epilogue.kind =
        p.bias != nullptr ? CUBLASLT_EPILOGUE_RELU_AUX_BIAS : CUBLASLT_EPILOGUE_RELU_AUX;
  } else if (p.relu) {
    epilogue.kind = p.bias != nullptr ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
  } else if (p.bias != nullptr) {
    epilogue.kind = CUBLASLT_EPILOGUE_BIAS;
  }
  return epilogue;
}

// Key of a measured choice.
struct PlanKey {
  std::int64_t m = 0, n = 0, k = 0;
  std::uint32_t epilogue = 0;
  std::uint32_t flags = 0;  // transposes, types, alignment
  auto operator<=>(const PlanKey&) const = default;
};

struct Algorithm {
  bool possible = false;  // false: the library has no algorithm
  cublasLtMatmulAlgo_t algorithm{};
  double seconds = 0;  // 0: too short to measure
};

// Mean time of f() on the stream, in seconds, after one warm-up call.
template <class F>
double seconds_of(CudaContext& ctx, CUstream_st* stream, F&& f) {
  f();
  ctx.start_clock(stream);
  constexpr int kRounds = 3;
  for (int i = 0; i < kRounds; ++i) f();
  return ctx.stop_clock(stream) / kRounds;
}
template <class F>
double seconds_of(CudaContext& ctx, F&& f) {
  return seconds_of(ctx, ctx.stream(), std::forward<F>(f));
}

// The library's handle and workspace, the chosen algorithms and variants.
class Plans {
 public:
  Plans() { check_blas(cublaslt().create(&handle_), "cannot create a handle"); }
  ~Plans() {
    if (arena_ != nullptr) arena_->release(workspace_);
    cublaslt().destroy(handle_);
  }
  Plans(const Plans&) = delete;
  Plans& operator=(const Plans&) = delete;

  static constexpr std::size_t kWorkspace = std::size_t{64} << 20;
  std::byte* workspace(Arena& arena) {
    if (arena_ == nullptr) {
      arena_ = &arena;
      workspace_ = arena.allocate(kWorkspace);
    }
    return workspace_;
  }
  cublasLtHandle_t handle() const { return handle_; }

  // The algorithm for this key, chosen by `choose` on first use.
  template <class F>
  const Algorithm& algorithm(const PlanKey& key, F&& choose) {
    const auto found = algorithms_.find(key);
    return found != algorithms_.end() ? found->second
                                      : algorithms_.emplace(key, choose()).first->second;
  }
  // All choices, to be saved and restored.
  std::map<PlanKey, Algorithm>& algorithms() { return algorithms_; }
  std::map<PlanKey, int>& variants() { return variants_; }

  // The number of the fastest variant for this key, chosen by `choose` on first use.
  template <class F>
  int variant(const PlanKey& key, F&& choose) {
    const auto found = variants_.find(key);
    return found != variants_.end() ? found->second
                                    : variants_.emplace(key, choose()).first->second;
  }

 private:
  cublasLtHandle_t handle_ = nullptr;
  Arena* arena_ = nullptr;
  std::byte* workspace_ = nullptr;
  std::map<PlanKey, Algorithm> algorithms_;
  std::map<PlanKey, int> variants_;
};

class Layout {
 public:
  Layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns) {
    check_blas(cublaslt().init_matrix_layout(&layout_, sizeof layout_, type,
                                             static_cast<std::uint64_t>(rows),
                                             static_cast<std::uint64_t>(columns), rows),
               "cannot describe a matrix");
  }
  cublasLtMatrixLayout_t get() { return &layout_; }

 private:
  cublasLtMatrixLayoutOpaque_t layout_;
};

// The largest power of two, up to 16, that divides the address.
inline std::uint32_t alignment_of(const void* address) {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  return value == 0 ? 16 : std::min<std::uint32_t>(16, 1u << std::countr_zero(value));
}

// Similar numbers of rows share an algorithm: rounds down to two significant bits.
inline std::int64_t bucket(std::int64_t rows) {
  if (rows <= 16) return rows;
  const int shift = std::bit_width(static_cast<std::uint64_t>(rows)) - 2;
  return (rows >> shift) << shift;
}

template <class T, class C>
class CublasLtProduct {
 public:
  CublasLtProduct(CudaContext& ctx, const Product<T, C>& p, const Epilogue& epilogue)
      : ctx_(ctx),
        p_(p),
        epilogue_(epilogue),
        plans_(ctx.cache<Plans>()),
        b_(kType<T>, p.transpose_b ? p.k : p.n, p.transpose_b ? p.n : p.k),
        a_(kType<T>, p.transpose_a ? p.m : p.k, p.transpose_a ? p.k : p.m),
        addend_(p.residual != nullptr ? kType<T> : kType<C>, p.n, p.m),
        c_(kType<C>, p.n, p.m),
        workspace_(plans_.workspace(ctx.arena())) {
    check_blas(cublaslt().init_matmul(&product_, sizeof product_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
               "cannot describe a product");
    set(CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue.kind);
    if (epilogue.bias != nullptr) {
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, epilogue.bias);
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, epilogue.bias_type);
    }
    if (epilogue.mask != nullptr) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, epilogue.mask);
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, mask_stride(p.n));
    }
    if (epilogue.gelu_input != nullptr) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, epilogue.gelu_input);
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.n);
    }
  }

  // The number of batch rows is m, or k in the gradient of a weight, which is a sum over the rows.
  PlanKey key() const {
    const bool sums_over_rows = p_.transpose_a;
    return {.m = sums_over_rows         ? p_.m
                 : ctx_.deterministic() ? 0
                                        : bucket(p_.m),
            .n = p_.n,
            .k = sums_over_rows ? bucket(p_.k) : p_.k,
            .epilogue = static_cast<std::uint32_t>(epilogue_.kind),
            .flags = flags()};
  }

  const Algorithm& chosen() {
    return plans_.algorithm(key(), [&] { return choose(); });
  }

  // Whether launch() will succeed for exactly these sizes.
  bool possible() {
    if (!chosen().possible) return false;
    cublasLtMatmulHeuristicResult_t result;
    const cublasStatus_t status =
        cublaslt().check_algorithm(plans_.handle(), &product_, b_.get(), a_.get(), addend_.get(),
                                   c_.get(), &chosen().algorithm, &result);
    return (status == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= Plans::kWorkspace) ||
           !propose().empty();
  }

  // Returns false, and launches nothing, if the library has no algorithm.
  bool launch() {
    if (chosen().possible && launch(chosen().algorithm, p_.c, ctx_.stream())) return true;
    // The algorithm chosen for a similar number of rows may not support this one.
    for (const Algorithm& proposal : propose()) {
      if (launch(proposal.algorithm, p_.c, ctx_.stream())) return true;
    }
    return false;
  }

 private:
  template <class V>
  void set(cublasLtMatmulDescAttributes_t attribute, const V& value) {
    check_blas(cublaslt().set_matmul_attribute(&product_, attribute, &value, sizeof value),
               "cannot describe a product");
  }

  std::uint32_t flags() const {
    return (p_.transpose_a ? 1u : 0u) | (p_.transpose_b ? 2u : 0u) | (p_.accumulate ? 4u : 0u) |
           (sizeof(T) == 2 ? 8u : 0u) | (sizeof(C) == 2 ? 16u : 0u) |
           (epilogue_.bias_type == CUDA_R_16BF ? 32u : 0u) | (p_.residual != nullptr ? 64u : 0u) |
           (std::min({alignment_of(p_.a), alignment_of(p_.b), alignment_of(p_.c),
                      alignment_of(p_.residual)})
            << 8);
  }

  // The algorithms that the library proposes, best first; empty if it has none.
  std::vector<Algorithm> propose() {
    cublasLtMatmulPreferenceOpaque_t preference;
    check_blas(cublaslt().init_preference(&preference, sizeof preference),
               "cannot set a preference");
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      check_blas(cublaslt().set_preference_attribute(&preference, attribute, &value, sizeof value),
                 "cannot set a preference");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, Plans::kWorkspace);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(p_.b));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(p_.a));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
           alignment_of(p_.residual != nullptr ? static_cast<const void*>(p_.residual) : p_.c));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(p_.c));
    if (ctx_.deterministic()) {
      const std::uint32_t none = CUBLASLT_REDUCTION_SCHEME_NONE;
      prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, none);
    }
    constexpr int kProposals = 8;
    cublasLtMatmulHeuristicResult_t results[kProposals];
    int count = 0;
    const cublasStatus_t status =
        cublaslt().propose_algorithms(plans_.handle(), &product_, b_.get(), a_.get(), addend_.get(),
                                      c_.get(), &preference, kProposals, results, &count);
    std::vector<Algorithm> proposals;
    for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < count; ++i) {
      if (results[i].state != CUBLAS_STATUS_SUCCESS) continue;
      proposals.push_back({.possible = true, .algorithm = results[i].algo});
    }
    return proposals;
  }

  // The fastest proposal, or the first one if the product is too short to measure.
  Algorithm choose() {
    if (ctx_.deterministic() && !p_.transpose_a) {
      Product<T, C> typical = p_;
      typical.m = 128;
      const std::vector<Algorithm> proposals = CublasLtProduct(ctx_, typical, epilogue_).propose();
      return proposals.empty() ? Algorithm{} : proposals.front();
    }
    const std::vector<Algorithm> proposals = propose();
    if (proposals.empty()) return {};
    Algorithm best = proposals.front();
    constexpr double kWorthMeasuring = 5e8;
    if (ctx_.deterministic() || p_.work().flops < kWorthMeasuring) return best;
    const ScratchMemory scratch(ctx_.arena(), static_cast<std::size_t>(p_.m * p_.n) * sizeof(C));
    // On a side stream, since the main stream may be capturing a graph.
    CUstream_st* stream = ctx_.side_stream();
    for (const Algorithm& proposal : proposals) {
      if (!launch(proposal.algorithm, scratch.as<C>(), stream)) continue;
      const double seconds =
          seconds_of(ctx_, stream, [&] { launch(proposal.algorithm, scratch.as<C>(), stream); });
      if (best.seconds == 0 || seconds < best.seconds) {
        best = proposal;
        best.seconds = seconds;
      }
    }
    return best.seconds > 0 ? best : Algorithm{};
  }

  bool launch(const cublasLtMatmulAlgo_t& algorithm, C* c, CUstream_st* stream) {
    const float one = 1, beta = p_.accumulate || p_.residual != nullptr ? 1 : 0;
    const void* addend = p_.residual != nullptr ? static_cast<const void*>(p_.residual) : c;
    return cublaslt().matmul(plans_.handle(), &product_, &one, p_.b, b_.get(), p_.a, a_.get(),
                             &beta, addend, addend_.get(), c, c_.get(), &algorithm, workspace_,
                             Plans::kWorkspace, stream) == CUBLAS_STATUS_SUCCESS;
  }

  CudaContext& ctx_;
  const Product<T, C>& p_;
  Epilogue epilogue_;
  Plans& plans_;
  Layout b_, a_, addend_, c_;  // named as in our product; cuBLASLt calls them A, B, C, D
  cublasLtMatmulDescOpaque_t product_;
  std::byte* workspace_;
};

}  // namespace nunchi::kernels
