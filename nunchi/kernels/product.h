// Matrix products. On the CPU a library computes them in f32, and our own loops in f64.
//
// With oneDNN on AVX-512 the bits of a row of c depend only on that row of a and on b. With older
// instruction sets or OpenBLAS the number of rows may change the last bits; rows_are_independent()
// tells which holds.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "nunchi/base/error.h"
#include "nunchi/kernels/run.h"
#include "nunchi/tensor/dtype.h"
#include "nunchi/tensor/weight_form.h"

namespace nunchi::kernels {

// The matrix b of a product in another form than plain. The form determines the element type;
// packed elements have the type of b.
struct FormedMatrix {
  WeightForm form = WeightForm::plain;
  const void* data = nullptr;     // null: there is no other form, products read the plain b
  const float* scales = nullptr;  // of the form int8: one for each row of the weight
};

// c = a · b, or c += a · b with `accumulate`. Then, optionally: adds the bias, and then either adds
// `residual` or applies relu.
template <class T, class C = T>
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;  // [M, K], or [K, M] when transposed
  bool transpose_a = false;
  // [K, N], or [N, K] when transposed. A GPU may read a transposed b and the bias before the
  // previous kernel has ended, so no kernel of a decode step may write them: they must be
  // parameters. Null if the matrix exists only in the form of formed_b.
  const T* b = nullptr;
  bool transpose_b = false;
  FormedMatrix formed_b;  // the same matrix in another form; devices without that form ignore it
  C* c = nullptr;         // [M, N]
  bool accumulate = false;
  const T* bias = nullptr;      // [N]; must be null with accumulate
  bool relu = false;            // must be false with accumulate
  const T* residual = nullptr;  // [M, N], must not alias c; must be null with accumulate or relu
  // One bit per result, for the backward pass: whether relu let it pass. relu_mask_bytes() bytes;
  // null: not written.
  std::uint8_t* mask = nullptr;
  const char* label = "product";

  static constexpr bool kIsaIndependent = std::is_same_v<T, float>;
  const char* name() const { return label; }
  Work work() const {
    return {.flops =
                2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k)};
  }
};

template <class Target, class T, class C>
void compute(ContextOf<Target>& ctx, const Product<T, C>& p);

// Throws an Error that names the product.
[[noreturn]] void refuse_product(const char* label, const char* why);

// Throws Error if the options contradict each other.
template <class T, class C>
[[gnu::always_inline]] inline void check_product(const Product<T, C>& p) {
  if (p.accumulate && (p.bias != nullptr || p.relu || p.residual != nullptr)) {
    refuse_product(p.label, "a product that accumulates cannot have a bias, relu or a residual.");
  }
  if (p.relu && p.residual != nullptr) {
    refuse_product(p.label, "a product can have relu or a residual, not both.");
  }
  if (p.residual != nullptr &&
      static_cast<const void*>(p.residual) == static_cast<const void*>(p.c)) {
    refuse_product(p.label, "the residual of a product cannot be the buffer of its result.");
  }
}

// Packs b into the layout that the library reads fastest. The same packed matrix serves products
// with any m, on contexts with any number of threads.
template <class T>
struct PackMatrix {
  std::int64_t n = 0, k = 0;
  const T* b = nullptr;  // [K, N], or [N, K] when transposed
  bool transpose_b = false;
  T* packed = nullptr;  // [packed_elements()]

  static constexpr bool kIsaIndependent = true;
  const char* name() const { return "pack_matrix"; }
  Work work() const { return {.bytes = 2.0 * static_cast<double>(n * k) * sizeof(T)}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const PackMatrix<T>& p);

// Size of `packed` in elements; 0 where packing gains nothing and products read the plain b.
std::int64_t packed_elements(CpuContext& ctx, const PackMatrix<float>& pack);
std::int64_t packed_elements(CpuContext& ctx, const PackMatrix<double>& pack);

// Whether a context's device packs matrices: only the CPU does.
template <class AnyContext>
inline constexpr bool kPacks = std::is_same_v<AnyContext, CpuContext>;

// Whether a product adds `residual` in the same kernel. On the CPU the addition would be a separate
// pass, so callers leave it to the norm that follows, which adds the residual in its own pass.
template <class AnyContext>
inline constexpr bool kFusesResidualAdd = !std::is_same_v<AnyContext, CpuContext>;

// The algorithms that were chosen by measurement, as text, and the function that restores them, so
// that a resumed run uses the same ones. The text is empty on the CPU, which measures none.
// choose_algorithms() throws Error for text in another format.
inline std::string chosen_algorithms(CpuContext&) { return {}; }
inline void choose_algorithms(CpuContext&, const std::string&) {}
#if NUNCHI_CUDA
std::string chosen_algorithms(CudaContext& ctx);
void choose_algorithms(CudaContext& ctx, const std::string& text);
#endif

// Size of the relu mask of `product` in bytes; 0 where the backward pass reads the result instead,
// as on the CPU.
template <class T>
std::int64_t relu_mask_bytes(CpuContext&, const Product<T>&) {
  return 0;
}
#if NUNCHI_CUDA
std::int64_t relu_mask_bytes(CudaContext& ctx, const Product<float>& product);
std::int64_t relu_mask_bytes(CudaContext& ctx, const Product<BFloat16>& product);
#endif

// Whether the bits of a row of a CPU product are the same for any number of rows.
bool rows_are_independent();
// Name and version of the library that computes f32 products on the CPU.
const char* product_library();

}  // namespace nunchi::kernels
