// Products by cuBLASLt. Its matrices stand column by column, so it is asked for the transpose of
// ours: cᵀ [N, M] = op(b)ᵀ op(a)ᵀ, for which nothing moves.
//
// The algorithm for a shape is the fastest of those that the library proposes, measured once. With
// a deterministic context it depends on the weight's sizes alone and does not split along K.
#include <cublasLt.h>

#include <array>
#include <bit>
#include <map>
#include <sstream>
#include <vector>

#include "nunchi/kernels/cuda/device.h"
#include "nunchi/kernels/cuda/row_product.h"
#include "nunchi/kernels/product.h"

namespace nunchi::kernels::cuda {
namespace {

void check_blas(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(std::string("cuBLASLt: ") + what + ": " + cublasLtGetStatusString(status) + ".");
}

template <class T>
constexpr cudaDataType_t kType = sizeof(T) == 2 ? CUDA_R_16BF : CUDA_R_32F;

// What an algorithm is chosen for.
struct PlanKey {
  std::int64_t m, n, k;
  std::uint32_t flags;  // transposes, epilogue, types, alignment
  auto operator<=>(const PlanKey&) const = default;
};

// The library's handle, memory for its work, and the chosen algorithms.
class Plans {
 public:
  Plans() { check_blas(cublasLtCreate(&handle_), "it cannot be started"); }
  ~Plans() {
    if (arena_ != nullptr) arena_->release(workspace_);
    cublasLtDestroy(handle_);
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
  std::map<PlanKey, cublasLtMatmulAlgo_t>& chosen() { return chosen_; }

 private:
  cublasLtHandle_t handle_ = nullptr;
  Arena* arena_ = nullptr;
  std::byte* workspace_ = nullptr;
  std::map<PlanKey, cublasLtMatmulAlgo_t> chosen_;
};

class Layout {
 public:
  Layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns) {
    check_blas(cublasLtMatrixLayoutInit(&layout_, type, static_cast<std::uint64_t>(rows),
                                        static_cast<std::uint64_t>(columns), rows),
               "a layout");
  }
  cublasLtMatrixLayout_t get() { return &layout_; }

 private:
  cublasLtMatrixLayoutOpaque_t layout_;
};

// The largest power of two, up to 16, that the address is a multiple of.
std::uint32_t alignment_of(const void* address) {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  return value == 0 ? 16 : std::min<std::uint32_t>(16, 1u << std::countr_zero(value));
}

// Numbers of rows that are close to one another share an algorithm: two binary digits of them.
std::int64_t bucket(std::int64_t rows) {
  if (rows <= 16) return rows;
  const int shift = std::bit_width(static_cast<std::uint64_t>(rows)) - 2;
  return (rows >> shift) << shift;
}

template <class T, class C>
class Multiplication {
 public:
  Multiplication(CudaContext& ctx, const Product<T, C>& p)
      : ctx_(ctx),
        p_(p),
        plans_(ctx.cache<Plans>()),
        b_(kType<T>, p.transpose_b ? p.k : p.n, p.transpose_b ? p.n : p.k),
        a_(kType<T>, p.transpose_a ? p.m : p.k, p.transpose_a ? p.k : p.m),
        c_(kType<C>, p.n, p.m),
        workspace_(plans_.workspace(ctx.arena())) {
    check_blas(cublasLtMatmulDescInit(&product_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a product");
    set(CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    const cublasLtEpilogue_t epilogue =
        p.bias != nullptr ? (p.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS)
                          : (p.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    if (p.bias != nullptr) {
      const void* bias = p.bias;
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, kType<T>);
    }
  }

  void run() {
    // Rows of a batch are m, or k where a weight's gradient is summed over them.
    const bool over_rows = p_.transpose_a;
    const PlanKey key{over_rows              ? p_.m
                      : ctx_.deterministic() ? 0
                                             : bucket(p_.m),
                      p_.n, over_rows ? bucket(p_.k) : p_.k, flags()};
    auto found = plans_.chosen().find(key);
    if (found == plans_.chosen().end()) found = plans_.chosen().emplace(key, choose()).first;
    if (start(found->second, p_.c, ctx_.stream())) return;
    // What was chosen for another number of rows need not serve this one.
    const std::vector<cublasLtMatmulHeuristicResult_t> proposals = propose();
    if (!start(proposals.front().algo, p_.c, ctx_.stream())) {
      throw Error("cuBLASLt: a product of " + std::to_string(p_.m) + " x " + std::to_string(p_.n) +
                  " x " + std::to_string(p_.k) + " failed.");
    }
  }

 private:
  template <class V>
  void set(cublasLtMatmulDescAttributes_t attribute, const V& value) {
    check_blas(cublasLtMatmulDescSetAttribute(&product_, attribute, &value, sizeof value),
               "a product");
  }

  std::uint32_t flags() const {
    return (p_.transpose_a ? 1u : 0u) | (p_.transpose_b ? 2u : 0u) | (p_.relu ? 4u : 0u) |
           (p_.bias != nullptr ? 8u : 0u) | (p_.accumulate ? 16u : 0u) |
           (sizeof(T) == 2 ? 32u : 0u) | (sizeof(C) == 2 ? 64u : 0u) |
           (std::min({alignment_of(p_.a), alignment_of(p_.b), alignment_of(p_.c)}) << 8);
  }

  std::vector<cublasLtMatmulHeuristicResult_t> propose() {
    cublasLtMatmulPreferenceOpaque_t preference;
    check_blas(cublasLtMatmulPreferenceInit(&preference), "a preference");
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      check_blas(cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof value),
                 "a preference");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, Plans::kWorkspace);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(p_.b));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(p_.a));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(p_.c));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(p_.c));
    if (ctx_.deterministic()) {
      const std::uint32_t none = CUBLASLT_REDUCTION_SCHEME_NONE;
      prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, none);
    }
    constexpr int kProposals = 8;
    std::vector<cublasLtMatmulHeuristicResult_t> results(kProposals);
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(plans_.handle(), &product_, b_.get(), a_.get(), c_.get(),
                                       c_.get(), &preference, kProposals, results.data(), &count);
    if (status != CUBLAS_STATUS_SUCCESS || count == 0) {
      throw Error("cuBLASLt knows no way to multiply " + std::to_string(p_.m) + " x " +
                  std::to_string(p_.n) + " x " + std::to_string(p_.k) + ".");
    }
    results.resize(static_cast<std::size_t>(count));
    return results;
  }

  // The fastest proposal. Small products are over before a clock has started.
  cublasLtMatmulAlgo_t choose() {
    if (ctx_.deterministic() && !p_.transpose_a) {
      Product<T, C> typical = p_;
      typical.m = 128;
      return Multiplication(ctx_, typical).propose().front().algo;
    }
    const std::vector<cublasLtMatmulHeuristicResult_t> proposals = propose();
    constexpr double kWorthMeasuring = 5e8;
    if (p_.work().flops < kWorthMeasuring || proposals.size() == 1) return proposals.front().algo;
    const ScratchMemory room(ctx_.arena(), static_cast<std::size_t>(p_.m * p_.n) * sizeof(C));
    // Beside the stream, since that may be noting what it is told.
    CUstream_st* stream = ctx_.side_stream();
    double best = 0;
    const cublasLtMatmulAlgo_t* fastest = nullptr;
    for (const auto& proposal : proposals) {
      if (!start(proposal.algo, room.as<C>(), stream)) continue;
      ctx_.start_clock(stream);
      constexpr int kRounds = 3;
      for (int i = 0; i < kRounds; ++i) start(proposal.algo, room.as<C>(), stream);
      const double seconds = ctx_.stop_clock(stream);
      if (fastest != nullptr && seconds >= best) continue;
      fastest = &proposal.algo;
      best = seconds;
    }
    return fastest != nullptr ? *fastest : proposals.front().algo;
  }

  bool start(const cublasLtMatmulAlgo_t& algorithm, C* c, CUstream_st* stream) {
    const float one = 1, beta = p_.accumulate ? 1 : 0;
    return cublasLtMatmul(plans_.handle(), &product_, &one, p_.b, b_.get(), p_.a, a_.get(), &beta,
                          c, c_.get(), c, c_.get(), &algorithm, workspace_, Plans::kWorkspace,
                          stream) == CUBLAS_STATUS_SUCCESS;
  }

  CudaContext& ctx_;
  const Product<T, C>& p_;
  Plans& plans_;
  Layout b_, a_, c_;
  cublasLtMatmulDescOpaque_t product_;
  std::byte* workspace_;
};

template <class T, class C>
void multiply(CudaContext& ctx, const Product<T, C>& p) {
  if (p.m * p.n == 0) return;
  if (p.k == 0) throw Error("a product over nothing.");
  if constexpr (std::is_same_v<T, BFloat16>) {
    // Few rows and many are added in different orders, which a deterministic context rules out.
    if (!ctx.deterministic() && multiply_rows(ctx, p)) return;
  }
  Multiplication<T, C>(ctx, p).run();
}

}  // namespace

template <>
void compute(CudaContext& ctx, const Product<float>& p) {
  multiply(ctx, p);
}
template <>
void compute(CudaContext& ctx, const Product<BFloat16>& p) {
  multiply(ctx, p);
}
template <>
void compute(CudaContext& ctx, const Product<BFloat16, float>& p) {
  multiply(ctx, p);
}

}  // namespace nunchi::kernels::cuda

namespace nunchi::kernels {

// A line with the library's version, then one for each shape: m n k flags, and the algorithm's
// bytes as hexadecimal digits.
std::string chosen_algorithms(CudaContext& ctx) {
  std::ostringstream text;
  text << "cublasLt " << cublasLtGetVersion() << '\n';
  for (const auto& [key, algorithm] : ctx.cache<cuda::Plans>().chosen()) {
    text << key.m << ' ' << key.n << ' ' << key.k << ' ' << key.flags << std::hex;
    for (const std::uint64_t word : algorithm.data) text << ' ' << word;
    text << std::dec << '\n';
  }
  return text.str();
}

void choose_algorithms(CudaContext& ctx, const std::string& text) {
  std::istringstream lines(text);
  std::string line, library;
  std::size_t version = 0;
  std::getline(lines, line);
  if (!(std::istringstream(line) >> library >> version) || library != "cublasLt") {
    throw Error("the saved algorithms of products cannot be read.");
  }
  // Another version of the library has other algorithms: they are chosen anew.
  if (version != cublasLtGetVersion()) return;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    cuda::PlanKey key{};
    cublasLtMatmulAlgo_t algorithm{};
    words >> key.m >> key.n >> key.k >> key.flags >> std::hex;
    for (std::uint64_t& word : algorithm.data) words >> word;
    if (!words) throw Error("the saved algorithms of products cannot be read.");
    ctx.cache<cuda::Plans>().chosen().insert_or_assign(key, algorithm);
  }
}

}  // namespace nunchi::kernels
