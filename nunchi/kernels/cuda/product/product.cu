#include "nunchi/kernels/product.h"

#include <cmath>
#include <sstream>

#include "nunchi/kernels/activation.h"
#include "nunchi/kernels/cuda/product/cublaslt_product.h"
#include "nunchi/kernels/cuda/product/few_rows_product.h"

namespace nunchi::kernels {
namespace {

template <class T, class C>
void multiply_by_library(CudaContext& ctx, const Product<T, C>& p) {
  if (CublasLtProduct<T, C>(ctx, p, epilogue_of(p)).launch()) return;
  throw Error("cuBLASLt has no algorithm for a product of " + std::to_string(p.m) + " x " +
              std::to_string(p.n) + " x " + std::to_string(p.k) + ".");
}

// Applies the epilogue to the stored product; a block loops over rows for its columns.
template <class N>
__global__ void epilogue_kernel(std::int64_t rows, std::int64_t columns, const N* bias,
                                const N* residual, bool relu, float* c) {
  const std::int64_t column = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  const float column_bias = bias != nullptr ? to_float(bias[column]) : 0.0f;
  for (std::int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const std::int64_t element = row * columns + column;
    float x = c[element] + column_bias;
    if (residual != nullptr) x += to_float(residual[element]);
    c[element] = relu && x < 0 ? 0.0f : x;
  }
}

template <class T>
void apply_epilogue(CudaContext& ctx, const Product<T, float>& p) {
  constexpr unsigned kThreads = 256, kMaxBlocks = 1024;
  const dim3 blocks(blocks_for(p.n, kThreads),
                    static_cast<unsigned>(std::min<std::int64_t>(p.m, kMaxBlocks)));
  epilogue_kernel<<<blocks, kThreads, 0, ctx.stream()>>>(p.m, p.n, native(p.bias),
                                                         native(p.residual), p.relu, p.c);
  check_launch(p.name());
}

// A mask costs a little time in the forward pass and can save relu's pass over the gradients in the
// backward pass. How much it saves is measured only with the backward product; until then, half of
// that pass is assumed.
template <class T>
bool mask_pays(CudaContext& ctx, const Product<T>& masked, const Algorithm& with_mask) {
  Product<T> plain = masked;
  plain.mask = nullptr;
  const Algorithm without = CublasLtProduct<T, T>(ctx, plain, epilogue_of(plain)).chosen();
  if (with_mask.seconds == 0 || without.seconds == 0) return true;
  const ScratchMemory d(ctx.arena(), static_cast<std::size_t>(plain.m * plain.n) * sizeof(T));
  const double relu_pass = seconds_of(ctx, [&] {
    run_unprofiled(ctx, ActivationBackward<T>{.kind = ActivationKind::relu,
                                              .rows = {.capacity = plain.m},
                                              .width = plain.n,
                                              .x = plain.c,
                                              .d_out = d.as<T>(),
                                              .d_x = d.as<T>()});
  });
  return with_mask.seconds < without.seconds + relu_pass / 2;
}

template <class T>
std::int64_t mask_bytes(CudaContext& ctx, Product<T> p) {
  if (p.m * p.n * p.k == 0 || p.m <= kMaxFewRows || ctx.deterministic()) return 0;
  const std::int64_t bytes = p.m * mask_stride(p.n) / 8;
  const ScratchMemory mask(ctx.arena(), static_cast<std::size_t>(bytes));
  p.mask = mask.as<std::uint8_t>();
  CublasLtProduct<T, T> masked(ctx, p, epilogue_of(p));
  if (!masked.possible()) return 0;
  const int pays = ctx.cache<Plans>().variant(
      masked.key(), [&] { return mask_pays(ctx, p, masked.chosen()) ? 1 : 0; });
  return pays != 0 ? bytes : 0;
}

}  // namespace

template <class Target, class T, class C>
void compute(ContextOf<Target>& ctx, const Product<T, C>& p) {
  check_product(p);
  if (p.m * p.n == 0) return;
  if (p.k == 0) throw Error("product: K must be at least 1, not 0.");
  if constexpr (std::is_same_v<T, BFloat16>) {
    // These kernels sum in another order than cuBLASLt, so results would depend on the number of
    // rows, which a deterministic context forbids.
    if (!ctx.deterministic() && try_few_rows_product(ctx, p)) return;
  }
  if constexpr (std::is_same_v<T, BFloat16> && std::is_same_v<C, BFloat16>) {
    if (!ctx.deterministic() && try_medium_rows_product(ctx, p)) return;
  }
  if constexpr (!std::is_same_v<T, C>) {
    // cuBLASLt's epilogue supports only addends of the result's type.
    if (p.bias != nullptr || p.residual != nullptr || p.relu) {
      Product<T, C> plain = p;
      plain.bias = plain.residual = nullptr;
      plain.relu = false;
      multiply_by_library(ctx, plain);
      return apply_epilogue(ctx, p);
    }
  }
  multiply_by_library(ctx, p);
}
template void compute<Cuda>(CudaContext&, const Product<float>&);
template void compute<Cuda>(CudaContext&, const Product<BFloat16>&);
template void compute<Cuda>(CudaContext&, const Product<BFloat16, float>&);

namespace {

constexpr const char* kUnreadable = "the saved product algorithms cannot be read.";

std::int64_t nanoseconds_of(const Algorithm& chosen) { return std::llround(chosen.seconds * 1e9); }

void write_key(std::ostream& text, const char* kind, const PlanKey& key) {
  text << kind << ' ' << key.m << ' ' << key.n << ' ' << key.k << ' ' << key.epilogue << ' '
       << key.flags;
}

}  // namespace

// Format: a line with cuBLASLt's version; one line per algorithm: its key, whether there is one,
// its nanoseconds, its data as hexadecimal words; one line per chosen variant: its key and number.
std::string chosen_algorithms(CudaContext& ctx) {
  Plans& plans = ctx.cache<Plans>();
  std::ostringstream text;
  text << "cublasLt " << cublaslt().version() << '\n';
  for (const auto& [key, chosen] : plans.algorithms()) {
    write_key(text, "algorithm", key);
    text << ' ' << chosen.possible << ' ' << nanoseconds_of(chosen) << std::hex;
    for (const std::uint64_t word : chosen.algorithm.data) text << ' ' << word;
    text << std::dec << '\n';
  }
  for (const auto& [key, variant] : plans.variants()) {
    write_key(text, "way", key);
    text << ' ' << variant << '\n';
  }
  return text.str();
}

void choose_algorithms(CudaContext& ctx, const std::string& text) {
  Plans& plans = ctx.cache<Plans>();
  std::istringstream lines(text);
  std::string line, kind;
  std::size_t version = 0;
  std::getline(lines, line);
  if (!(std::istringstream(line) >> kind >> version) || kind != "cublasLt")
    throw Error(kUnreadable);
  // Another version of cuBLASLt has other algorithms: they are chosen again.
  if (version != cublaslt().version()) return;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    PlanKey key;
    words >> kind >> key.m >> key.n >> key.k >> key.epilogue >> key.flags;
    if (kind == "way") {
      int variant = 0;
      if (!(words >> variant)) throw Error(kUnreadable);
      plans.variants().insert_or_assign(key, variant);
      continue;
    }
    Algorithm chosen;
    std::int64_t nanoseconds = 0;
    words >> chosen.possible >> nanoseconds >> std::hex;
    chosen.seconds = static_cast<double>(nanoseconds) * 1e-9;
    for (std::uint64_t& word : chosen.algorithm.data) words >> word;
    if (!words || kind != "algorithm") throw Error(kUnreadable);
    plans.algorithms().insert_or_assign(key, chosen);
  }
}

std::int64_t relu_mask_bytes(CudaContext& ctx, const Product<float>& product) {
  return mask_bytes(ctx, product);
}
std::int64_t relu_mask_bytes(CudaContext& ctx, const Product<BFloat16>& product) {
  return mask_bytes(ctx, product);
}

}  // namespace nunchi::kernels
